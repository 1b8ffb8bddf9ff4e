"""The model worker: drives scheduler and runtime, emits events."""
