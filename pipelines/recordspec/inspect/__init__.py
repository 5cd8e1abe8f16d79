"""Questions about files, answered without TensorFlow."""
