"""``python -m dipedl.cli``."""

from . import main

main()
