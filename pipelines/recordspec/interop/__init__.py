"""Schemas of other libraries, imported and exported: TensorFlow Metadata and TensorFlow Datasets."""

# The largest schema file: it is read into memory as a whole.
MAX_SCHEMA_BYTES = 64 << 20
# The files in which TFDS stores the metadata of a dataset.
TFDS_INFO, TFDS_FEATURES = "dataset_info.json", "features.json"
