"""Estimators, features and densities: cloned, fitted and called, with checks."""
