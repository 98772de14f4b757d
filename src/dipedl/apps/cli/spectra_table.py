"""Tables of ``dipedl spectra``: read classes, write predictions."""

from __future__ import annotations

import csv
from codecs import StreamWriter, getwriter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.pipeline import Pipeline

from ...writing.cells import cell, probability_names
from ...writing.files import whole_file
from ..spectra import Failure, Spectra
from ..spectra.files import stem
from .terminal import one_line

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


def rows_of(model: Pipeline, spectra: Spectra, files: Sequence[str], rate: float) -> Iterator[Row]:
    """One row per spectrum; unknown where the p-value does not exceed the false-alarm rate."""
    answers = model[-1].answers(model[:-1].transform(spectra.flux))
    mean, vacuity = answers.dirichlet.mean, answers.dirichlet.vacuity
    label = np.full(len(spectra), -1) if spectra.label is None else spectra.label
    snr = np.full(len(spectra), np.nan) if spectra.snr is None else spectra.snr
    for i, file in enumerate(files):
        yield Row(
            str(spectra.name[i]) if spectra.name is not None else "",
            file,
            spectra.target_names[label[i]] if label[i] >= 0 else "",
            float(snr[i]),
            tuple(map(float, mean[i])),
            str(model[-1].classes_[mean[i].argmax()]),
            float(vacuity[i]),
            float(answers.p_values[i]),
            bool(answers.p_values[i] <= rate),
        )


@contextmanager
def table_file(path: Path, classes: Sequence[str]) -> Iterator[Table]:
    """A table that appears at `path` once it is complete."""
    with whole_file(path) as file:
        yield Table(getwriter("utf-8")(file), classes)


class Table:
    """Lines of CSV with one spectrum each."""

    def __init__(self, stream: StreamWriter, classes: Sequence[str]) -> None:
        self.classes = classes
        self._writer = csv.writer(stream, lineterminator="\n")
        shares = probability_names(classes)
        last = ["predicted", "vacuity", "p_value", _UNKNOWN, "reason"]
        self._writer.writerow(map(_cell, ["name", "file", "header_class", "snr", *shares, *last]))

    def add(self, row: Row) -> None:
        """Write a spectrum."""
        known = "yes" if row.unknown else "no"
        shares = [f"{p:.6f}" for p in row.proba]
        numbers = [f"{row.vacuity:.6f}", f"{row.p_value:.6f}"]
        snr = "" if np.isnan(row.snr) else f"{row.snr:.2f}"
        facts = map(_cell, (row.name, row.file, row.header_class))
        self._writer.writerow([*facts, snr, *shares, _cell(row.predicted), *numbers, known, ""])

    def fail(self, failure: Failure) -> None:
        """Write the name of an unusable file, and why."""
        empty = [""] * (len(self.classes) + 6)
        name, file = _cell(Path(failure.file).name), _cell(failure.file)
        self._writer.writerow([name, file, *empty, _cell(failure.reason)])


def _cell(text: str) -> str:
    """A text as one line that no spreadsheet takes for a formula."""
    return cell(one_line(text))


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
    try:
        return _labels_in(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"--labels must name a CSV file in UTF-8, but {str(path)!r} is none: {error}"
        ) from error


def _labels_in(path: Path) -> dict[str, str]:
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
