"""Files of spectra, read."""
