"""Tables out of rows."""
