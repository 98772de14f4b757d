"""Features of spectra, as scikit-learn transformers."""
