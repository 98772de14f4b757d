"""Normalising flows and their preprocessing."""
