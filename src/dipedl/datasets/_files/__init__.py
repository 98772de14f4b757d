"""Published files: found, downloaded, checked, read."""
