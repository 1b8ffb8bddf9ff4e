"""Preparing a model: sources, recipes, shared declarations, export."""
