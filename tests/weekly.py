"""Cells of a table that `make test` leaves to `make test-all`: they walk no code of their own."""

import pytest


def sample_of(cells, *kept):
    """All cells; those that are not among `kept`, by their names or places, are slow."""
    return [
        cell
        if place in kept or (isinstance(cell, str) and cell in kept)
        else pytest.param(cell, marks=pytest.mark.slow)
        for place, cell in enumerate(cells)
    ]


def sample_of_rows(rows, *kept):
    """All rows, of several arguments each; those whose places are not among `kept` are slow."""
    return [
        row if place in kept else pytest.param(*row, marks=pytest.mark.slow)
        for place, row in enumerate(rows)
    ]
