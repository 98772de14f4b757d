"""Rows with receipts, and the store they lie in."""
