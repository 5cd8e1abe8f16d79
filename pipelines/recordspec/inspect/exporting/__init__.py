"""Records to files of other formats."""
