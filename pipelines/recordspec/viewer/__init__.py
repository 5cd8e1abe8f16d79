"""Shows the records of files on a page in the browser."""
