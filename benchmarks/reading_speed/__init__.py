"""Variants of reading the same rows, each in a separate process and environment; see `../read.py`."""
