"""The runner and its worker processes."""
