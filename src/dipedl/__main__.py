"""``python -m dipedl`` is ``dipedl``."""

from .cli import main

main()
