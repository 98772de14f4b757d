"""``python -m dipedl`` is ``dipedl``."""

from .cli import main

if __name__ == "__main__":
    main()
