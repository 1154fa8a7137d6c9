"""`python -m whence` is `whence`."""

from whence.cli import main

main()
