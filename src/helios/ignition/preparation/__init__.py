"""Shared declarations: every operation and every contract entry, from one forward pass."""
