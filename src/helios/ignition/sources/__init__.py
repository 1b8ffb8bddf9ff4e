"""Checkpoints on disk, read lazily and refused where they are not what they claim to be."""
