"""Cells of a table that `make test` leaves to `make test-all`: they walk no code of their own."""

import pytest


def some(cells, *kept):
    """All cells; those that are not among `kept`, by their names or places, are slow."""
    for place, cell in enumerate(cells):
        fast = place in kept or (isinstance(cell, str) and cell in kept)
        yield cell if fast else pytest.param(cell, marks=pytest.mark.slow)
