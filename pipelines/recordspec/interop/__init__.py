"""Schemas of others: TensorFlow Metadata and TensorFlow Datasets, in and out."""
