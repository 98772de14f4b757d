"""Scores of a trained classifier."""
