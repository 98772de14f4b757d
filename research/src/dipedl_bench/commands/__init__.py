"""The command ``dipedl-bench``."""
