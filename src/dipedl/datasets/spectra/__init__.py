"""Data sets of spectra."""
