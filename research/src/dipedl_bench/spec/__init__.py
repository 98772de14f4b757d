"""Suites: read from TOML, planned, and built into estimators."""
