"""``python -m dipedl`` is ``dipedl``."""

from .apps.cli import main

if __name__ == "__main__":
    main()
