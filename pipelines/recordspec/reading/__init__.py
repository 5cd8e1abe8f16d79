"""Reads shards as batches: the stages of a tf.data pipeline, and the recipe that connects them."""
