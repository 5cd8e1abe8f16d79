"""What `benchmarks/scanning.py` measures."""
