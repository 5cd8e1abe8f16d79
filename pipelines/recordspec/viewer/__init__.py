"""A page in the browser that shows the records of files."""
