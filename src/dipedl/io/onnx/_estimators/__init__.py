"""Classifiers, transformers and networks as parts of a graph."""
