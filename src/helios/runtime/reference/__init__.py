"""The reference runtime: every operation in NumPy float32, plainly. It is the oracle."""
