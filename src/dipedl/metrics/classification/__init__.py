"""Metrics of class predictions and class probabilities."""
