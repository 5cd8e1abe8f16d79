"""A schema and a config for data that has neither, inferred from its values."""
