"""Recipes: the only place that knows model architectures by name."""
