"""Spectra that are made: semi-real ones and toy ones."""
