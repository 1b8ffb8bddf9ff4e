"""Reasoning: where it starts, where it ends, and the answer around it."""
