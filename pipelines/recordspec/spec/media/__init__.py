"""Encoded media: Pillow and soundfile when records are written, codecs of TensorFlow when they are read."""
