"""The numbers the paper prints, to stand beside ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = [
    "CONFIGURATIONS",
    "Published",
    "published",
    "published_price",
    "published_rows",
    "published_toy",
    "same_method",
]


@dataclass(frozen=True)
class Published:
    """A cell of a table of the paper: mean and population standard deviation, as printed.

    The deviation is over four seeds (five noise draws in the corruption tables), None where the
    paper ran once; `decimals` says how many decimals the row was printed with.
    """

    mean: float
    sd: float | None
    decimals: int = 4

    @property
    def rounding(self) -> float:
        """Half a unit of the last printed decimal: how far the true value may lie from `mean`."""
        return 0.5 * 10.0**-self.decimals


def published(table: str, row: str) -> dict[str, Published]:
    """Cells of one row of a table of the paper, by metric; empty where the paper has none.

    Tables are such as ``"mnist"``, ``"ablation_mnist"``, ``"gamma_mnist"``, ``"sigma_mnist"``; a
    row is a method (``"R-EDL"``), a configuration (``"2b"``), a gamma (``"0.5"``) or a sigma
    (``"inf"``).

    Examples
    --------
    >>> from dipedl_bench.results.paper import published
    >>> published("mnist", "DIP-EDL")["accuracy"]
    Published(mean=0.9953, sd=0.0003, decimals=4)
    """
    return published_rows(table).get(row, {})


@cache
def published_rows(table: str) -> dict[str, dict[str, Published]]:
    """All rows of a table of the paper, in its order; empty if the paper has no such table."""
    rows = {}
    for row in (row for row in _tables().get(table, ()) if "values" in row):
        cells = row["values"]
        numbers = [x for cell in cells.values() for x in cell.values() if x is not None]
        # four decimals; a row where none needs the fourth was printed with three
        decimals = 3 if all(round(x, 3) == x for x in numbers) else 4
        rows[_label(row)] = {
            name: Published(cell["mean"] or 0.0, cell["sd"], decimals)
            for name, cell in cells.items()
        }
    return rows


def published_price(suite: str) -> float | None:
    """By how much the paper's DIP-EDL raises the ID Brier score of its network, relative to it.

    From its component ablation, with density (3) and without (2b); None of a suite without one.

    Examples
    --------
    >>> from dipedl_bench.results.paper import published_price
    >>> round(published_price("cifar10"), 3)
    0.177
    """
    rows = published_rows(f"ablation_{suite}")
    return rows["3"]["brier_id"].mean / rows["2b"]["brier_id"].mean - 1 if rows else None


def published_toy() -> dict[float, Published]:
    """The paper's in-sample vacuity under interpolation, by nu; its sd is over training points."""
    rows = _tables()["toy_vacuity"]
    return {row["nu"]: Published(row["mean"], row["sd"], decimals=3) for row in rows}


def same_method(one: str, other: str) -> bool:
    """Return whether two names differ in case and punctuation alone, as ``R-EDL`` and ``redl``."""
    one, other = ("".join(filter(str.isalnum, name.lower())) for name in (one, other))
    return one == other


@cache
def _tables() -> Mapping[str, Any]:
    text = files(__package__).joinpath("paper_tables.json").read_text(encoding="utf-8")
    tables: Mapping[str, Any] = json.loads(text)
    return tables


#: Which of n, density and classifier the ablation keeps -> its name.
CONFIGURATIONS = {
    (True, False, False): "1a",
    (False, True, False): "1b",
    (False, False, True): "1c",
    (True, True, False): "2a",
    (True, False, True): "2b",
    (False, True, True): "2c",
    (True, True, True): "3",
}


def _label(row: Mapping[str, Any]) -> str:
    if "classifier" in row:
        return CONFIGURATIONS[row["n"], row["density"], row["classifier"]]
    return str(row["method"]) if "method" in row else f"{float(row.get('sigma') or row['gamma']):g}"
