"""A dataset to inspect, and files that are read a few records at a time."""

from some_records import chunks, data, small_chunks  # noqa: F401  fixtures
