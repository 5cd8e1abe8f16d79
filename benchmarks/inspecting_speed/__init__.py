"""Variants of inspecting a file, each in a separate process; see `../inspecting.py`."""
