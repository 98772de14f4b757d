"""The report of a model on a user's own test table: one HTML file that loads nothing."""

from .page import render

__all__ = ["render"]
