"""Metrics of OOD detection."""
