"""Helios serves language models that were prepared beforehand."""

__version__ = "0.1.0"
