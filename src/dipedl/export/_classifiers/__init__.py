"""Classifiers as parts of a graph."""
