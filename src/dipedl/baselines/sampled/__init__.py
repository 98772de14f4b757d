"""Means over several networks, or over several dropout masks."""
