"""Readers of files of spectra."""
