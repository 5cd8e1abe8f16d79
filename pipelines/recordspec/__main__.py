"""`python -m recordspec`."""

from recordspec.cli import main

main()
