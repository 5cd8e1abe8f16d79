"""Infers a schema and a config from the values of data without either."""
