"""Metrics of classification with a reject option."""
