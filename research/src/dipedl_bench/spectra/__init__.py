"""Spectra that are drawn from a model of real ones."""
