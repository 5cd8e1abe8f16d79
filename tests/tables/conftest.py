"""A dataset to look at, and files of which a few records are read at once."""

from some_records import chunks, data, small_chunks  # noqa: F401  fixtures
