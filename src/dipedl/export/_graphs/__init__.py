"""Graphs under construction: operators, densities, evidence, transformers, models."""
