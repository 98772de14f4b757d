"""Densities, evidence and whole models as graphs."""
