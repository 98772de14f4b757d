"""Tables of ``dipedl spectra``: read classes, write predictions."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from ..spectra import Failure, Spectra
from ..spectra.files._fits import stem
from .spectra_model import Predictions

_UNKNOWN = "unknown"
_NAME_COLUMNS = ("name", "file")


class Row(NamedTuple):
    """One spectrum of the table: its class in the headers, and its prediction."""

    name: str
    file: str
    header_class: str
    snr: float
    proba: tuple[float, ...]
    predicted: str
    vacuity: float
    p_value: float
    unknown: bool


def rows_of(
    spectra: Spectra, files: Sequence[str], classes: Sequence[str], found: Predictions, rate: float
) -> Iterator[Row]:
    """One row per spectrum; unknown where the p-value does not exceed the false-alarm rate."""
    label = np.full(len(spectra), -1) if spectra.label is None else spectra.label
    snr = np.full(len(spectra), np.nan) if spectra.snr is None else spectra.snr
    for i, file in enumerate(files):
        yield Row(
            str(spectra.name[i]) if spectra.name is not None else "",
            file,
            spectra.target_names[label[i]] if label[i] >= 0 else "",
            float(snr[i]),
            tuple(map(float, found.proba[i])),
            classes[int(found.proba[i].argmax())],
            float(found.vacuity[i]),
            float(found.p_value[i]),
            bool(found.p_value[i] <= rate),
        )


class TableFile:
    """A CSV file that appears once it is complete."""

    def __init__(self, path: Path, classes: Sequence[str]) -> None:
        self.path, self.classes = path, classes
        self._partial = path.with_name(f".{path.name}.part")

    def __enter__(self) -> Self:
        self._stream = open(self._partial, "w", newline="", encoding="utf-8")
        self._writer = csv.writer(self._stream, lineterminator="\n")
        shares = [f"p_{name}" for name in self.classes]
        last = ["predicted", "vacuity", "p_value", _UNKNOWN, "reason"]
        self._writer.writerow(["name", "file", "header_class", "snr", *shares, *last])
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()
        if kind is None:
            os.replace(self._partial, self.path)
        else:
            self._partial.unlink()

    def add(self, row: Row) -> None:
        """Write a spectrum."""
        known = "yes" if row.unknown else "no"
        shares = [f"{p:.6f}" for p in row.proba]
        numbers = [f"{row.vacuity:.6f}", f"{row.p_value:.6f}"]
        snr = "" if np.isnan(row.snr) else f"{row.snr:.2f}"
        self._writer.writerow(
            [row.name, row.file, row.header_class, snr, *shares, row.predicted, *numbers, known, ""]
        )

    def fail(self, failure: Failure) -> None:
        """Write the name of an unusable file, and why."""
        empty = [""] * (len(self.classes) + 6)
        self._writer.writerow([Path(failure.file).name, failure.file, *empty, failure.reason])


def counted(rows: Sequence[Row], classes: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Counts of predictions, unknown last, by the class in the headers; "" without one."""
    columns = [*classes, _UNKNOWN]
    counts: dict[str, list[int]] = {}
    for row in rows:
        line = counts.setdefault(row.header_class, [0] * len(columns))
        line[columns.index(_UNKNOWN if row.unknown else row.predicted)] += 1
    order = [*classes, *sorted(counts.keys() - {*classes, ""}), ""]
    return [(name, counts[name]) for name in order if name in counts]


def read_labels(path: Path) -> dict[str, str]:
    """Class of each spectrum by its name, out of a CSV file with the columns name and class."""
    if not path.is_file():
        raise ValueError(f"--labels must name a CSV file, but {str(path)!r} is none")
    with open(path, newline="", encoding="utf-8-sig") as stream:
        lines = csv.DictReader(stream)
        columns: Sequence[Any] = lines.fieldnames or []
        named = next((name for name in _NAME_COLUMNS if name in columns), None)
        if named is None or "class" not in columns:
            raise ValueError(
                f"--labels must be a CSV file with the columns name (or file) and class, got "
                f"{list(columns)} in {str(path)!r}; write them into its first line"
            )
        found: dict[str, str] = {}
        for line in lines:
            name, kind = Path(line[named] or "").name, (line["class"] or "").strip()
            if not name or not kind:
                raise ValueError(
                    f"{str(path)!r}, line {lines.line_num}: name and class must not be empty"
                )
            if found.setdefault(stem(name), kind) != kind:
                raise ValueError(f"{str(path)!r}, line {lines.line_num}: {name} has two classes")
    return found
