"""Pages of results in the documentation."""
