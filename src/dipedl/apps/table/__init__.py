"""A user's own table: read it, learn from it, answer it row by row, check it, report on it.

`dipedl.apps.cli` calls this package. It asks nothing of the library but its public names.
"""
