"""Variants of writing the same rows, each in a separate process and environment; see `../write.py`."""
