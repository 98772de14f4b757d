"""``python -m dipedl_bench`` is ``dipedl-bench``."""

from .commands.run import main

if __name__ == "__main__":
    main()
