"""Synthetic spectra: semi-real and toy."""
