"""Rows to shards: where rows come from, how they are split and ordered, and the build."""
