"""Network architectures, one per file."""
