"""The benchmark as one HTML page."""
