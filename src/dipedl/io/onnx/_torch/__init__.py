"""Torch modules as graphs."""
