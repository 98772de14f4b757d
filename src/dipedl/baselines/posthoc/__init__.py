"""Scores of a classifier that is trained already."""
