"""How this package writes: files whole or not at all, a line of progress, HTML for a notebook."""
