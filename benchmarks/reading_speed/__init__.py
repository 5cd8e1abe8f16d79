"""Ways of reading the same rows, each in a process and an environment of its own; see `../read.py`."""
