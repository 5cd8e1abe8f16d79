"""The language: YAML to feature kinds, rows to column values, parsed columns to tensors."""
