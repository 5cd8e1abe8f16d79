"""Batches for Keras, PyTorch and JAX, without TensorFlow."""
