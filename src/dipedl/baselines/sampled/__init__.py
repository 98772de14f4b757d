"""Methods that average several networks, or several dropout masks."""
