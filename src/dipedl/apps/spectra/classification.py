"""Classes of spectra: learned from labelled ones, and predicted for others, line by line."""

from __future__ import annotations

import csv
from codecs import getwriter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline

from ...classifier import DIPClassifier
from ...io.model_file import load
from ...metrics import accuracy, balanced_accuracy, class_recall
from ...writing.files import whole_file
from ...writing.text import cell, one_line, probability_names
from .features import spectral_features
from .files import fits_files, read_spectra, stem
from .spectra import Failure, Spectra
from .toy import toy_spectra

_UNKNOWN = "unknown"
_NAME_COLUMNS = ("name", "file")
_AT_ONCE = 500
#: Classifiers by their name on the command line.
ESTIMATORS = {
    "mlp": lambda seed: MLPClassifier((64,), max_iter=300, random_state=seed),
    "logistic": lambda seed: LogisticRegression(max_iter=2000),
}
#: Smallest number of spectra per class: two in each of five folds.
MIN_PER_CLASS = 10


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

    def cells(self) -> list[str]:
        """Return the line of the table."""
        facts = map(_cell, (self.name, self.file, self.header_class))
        snr = "" if np.isnan(self.snr) else f"{self.snr:.2f}"
        *shares, vacuity, p = (f"{x:.6f}" for x in (*self.proba, self.vacuity, self.p_value))
        unknown = "yes" if self.unknown else "no"
        return [*facts, snr, *shares, _cell(self.predicted), vacuity, p, unknown, ""]


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
def table_file(path: Path, classes: Sequence[str]) -> Iterator[Any]:
    """Yield the writer of a CSV table that appears at `path` once it is complete."""
    shares = probability_names(classes)
    last = ["predicted", "vacuity", "p_value", _UNKNOWN, "reason"]
    with whole_file(path) as file:
        table = csv.writer(getwriter("utf-8")(file), lineterminator="\n")
        table.writerow(map(_cell, ["name", "file", "header_class", "snr", *shares, *last]))
        yield table


def _cell(text: str) -> str:
    """A text as one line that no spreadsheet takes for a formula."""
    return cell(one_line(text))


def count_predictions(rows: Sequence[Row], classes: Sequence[str]) -> list[tuple[str, list[int]]]:
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
        raise ValueError(f"`labels` must name a CSV file, but {str(path)!r} is none")
    found: dict[str, str] = {}
    try:
        with open(path, newline="", encoding="utf-8-sig") as stream:
            lines = csv.DictReader(stream)
            columns: Sequence[Any] = lines.fieldnames or []
            named = next((name for name in _NAME_COLUMNS if name in columns), None)
            if named is None or "class" not in columns:
                raise ValueError(
                    "`labels` must be a CSV file with the columns name (or file) and class, got "
                    f"{list(columns)} in {str(path)!r}; write them into its first line, with a "
                    "comma between"
                )
            for line in lines:
                name, kind = Path(line[named] or "").name, (line["class"] or "").strip()
                where = f"{str(path)!r}, line {lines.line_num}"
                if not name or not kind:
                    raise ValueError(f"{where}: name and class must not be empty")
                if found.setdefault(stem(name), kind) != kind:
                    raise ValueError(f"{where}: {name} has two classes")
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"`labels` must name a CSV file in UTF-8, but {str(path)!r} is none: {error}"
        ) from error
    return found


class Batch(NamedTuple):
    """Some files, and the spectra of those that could be read, in the same order."""

    files: list[str]
    spectra: Spectra


def file_batches(
    paths: Sequence[str], min_coverage: float, note: Callable[[str], None]
) -> Iterator[Batch]:
    """Spectra of all files, some hundred at a time."""
    files = fits_files(paths)
    for first in range(0, len(files), _AT_ONCE):
        some = files[first : first + _AT_ONCE]
        yield Batch([str(path) for path in some], read_spectra(some, min_coverage=min_coverage))
        note(f"{first + len(some)} of {len(files)} files read")


def toy_batches(n: int, seed: int, lamps: int = 0) -> Iterator[Batch]:
    """Made-up spectra, and some of a lamp: narrow lines on a faint continuum."""
    toys = toy_spectra(n, random_state=seed)
    spectra = Spectra(
        np.concatenate([toys.flux, _lamps(toys.wavelength, lamps, seed)]),
        toys.wavelength,
        np.concatenate([np.asarray(toys.label), np.full(lamps, len(toys.target_names))]),
        (*toys.target_names, "LAMP"),
        np.concatenate([np.asarray(toys.snr), np.full(lamps, np.nan)]),
        name=np.array([f"toy {row}" for row in range(n)] + [f"lamp {i}" for i in range(lamps)]),
    )
    yield Batch([f"made-up/{row}" for row in range(n + lamps)], spectra)


def _lamps(wavelength: NDArray[np.float64], n: int, seed: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    lines = rng.uniform(wavelength[0], wavelength[-1], (n, 40, 1))
    light = np.exp(-(((wavelength - lines) / 3) ** 2)).sum(axis=1)
    return np.asarray(0.2 + light + rng.normal(0, 0.1, light.shape), np.float32)


def select_labelled(
    batches: Iterator[Batch], labels: Path | None, wanted: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.str_], list[Failure]]:
    """Flux and class of the spectra with one of the wanted classes (default: all).

    Also the files that could not be read; ValueError if those are all. Classes come from the file
    `labels`, else from headers.
    """
    named = None if labels is None else read_labels(labels)
    flux, classes = [], []
    failures: list[Failure] = []
    n_read = 0
    for _, spectra in batches:
        kinds = _classes(spectra, named)
        kept = np.flatnonzero(np.isin(kinds, wanted) if wanted else kinds != "")
        flux.append(spectra.flux[kept])
        classes.append(kinds[kept])
        failures += spectra.failures
        n_read += len(spectra)
    if n_read == 0:
        raise ValueError(f"no spectrum could be read: {'; '.join(map(str, failures[:3]))}")
    return np.concatenate(flux), np.concatenate(classes), failures


def check_classes(found: NDArray[np.str_], wanted: Sequence[str]) -> None:
    """Refuse to learn if a wanted class has no spectrum, or if no spectrum has a class."""
    gone = ", ".join(sorted(set(wanted) - set(found)))
    if len(found) == 0 or gone:
        missing = f"no spectrum is of class {gone}" if gone else "no spectrum has a class"
        raise ValueError(
            f"{missing}: give a CSV file with names and classes by `labels`, or "
            "files whose headers hold a class"
        )


def _classes(spectra: Spectra, named: dict[str, str] | None) -> NDArray[np.str_]:
    if named is not None and spectra.name is not None:
        return np.array([named.get(str(name), "") for name in spectra.name], dtype=np.str_)
    label = np.full(len(spectra), -1) if spectra.label is None else spectra.label
    names = np.array([*spectra.target_names, ""], dtype=np.str_)
    found: NDArray[np.str_] = names[label]
    return found


def fit_model(
    flux: NDArray[np.float32],
    classes: NDArray[Any],
    *,
    estimator: str,
    components: int | None,
    seed: int,
) -> Pipeline:
    """Steps of `spectral_features` and a DIPClassifier with its defaults, fitted."""
    names, counts = np.unique(classes, return_counts=True)
    if len(names) < 2 or counts.min() < MIN_PER_CLASS:
        found = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        raise ValueError(
            f"two classes at least are needed, with {MIN_PER_CLASS} spectra each, got "
            f"{found or 'none'}; add labelled spectra, or name the classes to keep by `classes`"
        )
    n_components = min(500, len(flux) // 10) if components is None else components
    features = spectral_features(n_components=n_components, random_state=seed)
    Z = features.fit_transform(flux)
    classifier = DIPClassifier(ESTIMATORS[estimator](seed), random_state=seed).fit(Z, classes)
    return Pipeline([*features.steps, ("classifier", classifier)])


def held_out(model: Pipeline) -> tuple[float, float, dict[str, float]]:
    """Accuracy, balanced accuracy and recall of each class on the held-out rows."""
    classifier = model[-1]
    y, proba = classifier.evidence_.held_out_.labels, classifier.held_out_dirichlet().mean
    names = [str(name) for name in classifier.classes_]
    recall = dict(zip(names, map(float, class_recall(y, proba)), strict=True))
    return float(accuracy(y, proba)), float(balanced_accuracy(y, proba)), recall


def read_model(path: Path) -> Pipeline:
    """Read a model of `fit_model`."""
    wanted = f"{str(path)!r} must be a model of spectra; make one with: dipedl spectra fit"
    if not path.is_file():
        raise ValueError(f"{wanted}, but there is no such file")
    model = load(path)
    if not (isinstance(model, Pipeline) and isinstance(model[-1], DIPClassifier)):
        raise ValueError(f"{wanted}, but it holds a {type(model).__name__}")
    return model


def classify_all(
    model: Pipeline, batches: Iterator[Batch], rate: float, table: Any
) -> tuple[list[Row], list[Failure]]:
    """Write one line per file to a `table_file`; returns what was classified and what failed."""
    empty = [""] * (len(model[-1].classes_) + 6)
    rows: list[Row] = []
    failures: list[Failure] = []
    for files, spectra in batches:
        failed = {failure.file: failure for failure in spectra.failures}
        read = [file for file in files if file not in failed]
        refused = feature_failures(model, spectra.flux)
        failed |= {read[i]: Failure(read[i], None, reason) for i, reason in refused.items()}
        kept = [i for i in range(len(read)) if i not in refused]
        good = spectra.select(kept)
        lines = rows_of(model, good, [read[i] for i in kept], rate) if kept else ()
        by_file = {row.file: row for row in lines}
        for file in files:
            if file in by_file:
                table.writerow(by_file[file].cells())
            else:
                reason = failed[file].reason
                table.writerow([_cell(Path(file).name), _cell(file), *empty, _cell(reason)])
        rows += by_file.values()
        failures += failed.values()
    return rows, failures


def feature_failures(model: Pipeline, flux: NDArray[np.float32]) -> dict[int, str]:
    """Rows without valid features, and why; seldom any."""
    refused: dict[int, str] = {}
    first = model[0]
    if len(flux) == 0:
        return refused
    try:
        first.transform(flux)
    except ValueError:
        for i in range(len(flux)):
            try:
                first.transform(flux[i : i + 1])
            except ValueError as error:
                refused[i] = str(error)
    return refused
