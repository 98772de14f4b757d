"""Checks of methods with an uncertainty, by what they are about."""
