"""Responses made of frames or elements that say for whom they are."""
