"""Output of this package: files whole or not at all, a line of progress, HTML for a notebook."""
