"""Sources of rows. A source yields them in parts, in batches of columns, and locates them in messages."""
