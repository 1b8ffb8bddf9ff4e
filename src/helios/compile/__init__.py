"""Compiling programs for a device: metadata only, before anything is allocated."""
