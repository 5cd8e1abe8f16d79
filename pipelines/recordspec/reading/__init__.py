"""Shards to batches: which files, the stages of a tf.data pipeline, and the recipe that strings them."""
