"""Structured output: what a request demands of its answer, as one grammar over tokens."""
