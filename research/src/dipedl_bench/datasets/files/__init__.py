"""Published files: find, download, verify, read."""
