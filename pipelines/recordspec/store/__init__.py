"""A dataset on disk: shards and the manifest beside them, and their atomic publication."""
