"""Checks of densities, by what they are about."""
