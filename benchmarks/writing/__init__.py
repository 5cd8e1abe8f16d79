"""Ways of writing the same rows, each in a process and an environment of its own; see `../write.py`."""
