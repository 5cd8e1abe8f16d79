"""A dataset on disk: shards, the manifest beside them, and how both appear at once."""
