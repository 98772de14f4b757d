"""One self-contained HTML page about a result of the demo."""
