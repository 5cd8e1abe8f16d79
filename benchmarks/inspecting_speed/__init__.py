"""Ways of asking what is in a file, each in a process of its own; see `../inspecting.py`."""
