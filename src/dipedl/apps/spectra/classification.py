"""Classes of spectra: learned from labelled ones, and predicted for others, line by line."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline

from ...classifier import DIPClassifier
from ...features.scaling import FarRowsWarning
from ...io.model_file import load
from ...metrics import accuracy, balanced_accuracy, class_recall
from ...writing.text import cell, one_line, probability_names
from .features import spectral_features
from .files import fits_files, read_spectra, stem
from .spectra import Failure, Spectra
from .toy import toy_spectra

_AT_ONCE = 500
#: Smallest number of spectra per class: two in each of five folds.
MIN_PER_CLASS = 10


class Batch(NamedTuple):
    """Some files, and the spectra of those that could be read, in the same order."""

    files: list[str]
    spectra: Spectra

    @property
    def read(self) -> list[str]:
        """The file of each spectrum."""
        failed = {failure.file for failure in self.spectra.failures}
        return [file for file in self.files if file not in failed]

    @property
    def header_classes(self) -> NDArray[np.str_]:
        """The class of each spectrum in its headers, "" without one."""
        label = np.full(len(self.spectra), -1) if self.spectra.label is None else self.spectra.label
        names: NDArray[np.str_] = np.array([*self.spectra.target_names, ""], np.str_)[label]
        return names


def file_batches(paths: Sequence[str], note: Callable[[str], None]) -> Iterator[Batch]:
    """Spectra of all files, some hundred at a time."""
    files = fits_files(paths)
    for first in range(0, len(files), _AT_ONCE):
        some = files[first : first + _AT_ONCE]
        yield Batch([str(path) for path in some], read_spectra(some))
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


# Learn


class Labelled(NamedTuple):
    """Spectra to learn from: flux (n, p), the class and the file of each, and what failed."""

    flux: NDArray[np.float32]
    classes: NDArray[np.str_]
    files: list[str]
    failures: list[Failure]


def select_labelled(
    batches: Iterator[Batch], labels: Path | None, wanted: Sequence[str]
) -> Labelled:
    """Return the spectra with one of the wanted classes (default: all).

    Classes come from the file `labels`, else from headers. ValueError if no file could be read, or
    a wanted class has no spectrum.
    """
    known = None if labels is None else read_labels(labels)
    flux: list[NDArray[np.float32]] = []
    classes, files, failures, n_read = list[str](), list[str](), list[Failure](), 0
    for batch in batches:
        spectra, kinds = batch.spectra, batch.header_classes
        if known is not None and spectra.name is not None:
            kinds = np.array([known.get(str(name), "") for name in spectra.name], np.str_)
        kept = np.flatnonzero(np.isin(kinds, wanted) if wanted else kinds != "")
        flux.append(spectra.flux[kept])
        classes += kinds[kept].tolist()
        files += [batch.read[i] for i in kept]
        failures += spectra.failures
        n_read += len(spectra)
    if n_read == 0:
        raise ValueError(f"no spectrum could be read: {'; '.join(map(str, failures[:3]))}")
    gone = ", ".join(sorted(set(wanted) - set(classes)))
    if gone or not classes:
        missing = f"no spectrum is of class {gone}" if gone else "no spectrum has a class"
        raise ValueError(
            f"{missing}: give a CSV file with names and classes by `labels`, or "
            "files whose headers hold a class"
        )
    return Labelled(np.concatenate(flux), np.array(classes, np.str_), files, failures)


def read_labels(path: Path) -> dict[str, str]:
    """Return the class of each spectrum by its name, out of a CSV file of names and classes."""
    if not path.is_file():
        raise ValueError(f"`labels` must name a CSV file, but {str(path)!r} is none")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            table = csv.DictReader(file, restval="", strict=True)
            names, rows = list(table.fieldnames or ()), list(table)
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(
            f"`labels` must name a CSV file in UTF-8, but {str(path)!r} is none: {error}"
        ) from error
    named = "name" if "name" in names else "file"
    if named not in names or "class" not in names:
        raise ValueError(
            "`labels` must be a CSV file with the columns name (or file) and class, got "
            f"{names} in {str(path)!r}; write them into its first line, with a comma between"
        )
    known: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        name, kind = stem(Path(row[named]).name), row["class"].strip()
        reason = ""
        if None in row:  # where the reader puts fields beyond those of the first line
            reason = f"it has more fields than the first line, which has {len(names)}"
        elif not name or not kind:
            reason = "name and class must not be empty"
        elif known.setdefault(name, kind) != kind:
            reason = "this spectrum has two classes"
        if reason:
            raise ValueError(f"{str(path)!r}, row {number}: {reason}")
    return known


def fit_model(found: Labelled, seed: int) -> Pipeline:
    """Return the steps of `spectral_features` and a DIPClassifier with its defaults, fitted.

    A warning of spectra far from the rest names their files.
    """
    names, counts = np.unique(found.classes, return_counts=True)
    if len(names) < 2 or counts.min() < MIN_PER_CLASS:
        there = ", ".join(f"{name} {count}" for name, count in zip(names, counts, strict=True))
        raise ValueError(
            f"two classes at least are needed, with {MIN_PER_CLASS} spectra each, got {there}; add "
            "labelled spectra, or name the classes to keep by `classes`"
        )
    n_components = min(500, len(found.flux) // 10)
    features = spectral_features(n_components=n_components, random_state=seed)
    Z = features.fit_transform(found.flux)
    network = MLPClassifier((64,), max_iter=300, random_state=seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        classifier = DIPClassifier(network, random_state=seed).fit(Z, found.classes)
    for message in (one.message for one in caught):
        if isinstance(message, FarRowsWarning):
            message = message.rename(found.files, "file")
        warnings.warn(message, stacklevel=2)
    return Pipeline([*features.steps, ("classifier", classifier)])


def held_out(model: Pipeline) -> tuple[float, float, dict[str, float]]:
    """Accuracy, balanced accuracy and recall of each class on the held-out rows."""
    classifier = model[-1]
    y, proba = classifier.evidence_.held_out_.labels, classifier.held_out_dirichlet().mean
    names = [str(name) for name in classifier.classes_]
    recall = dict(zip(names, map(float, class_recall(y, proba)), strict=True))
    return float(accuracy(y, proba)), float(balanced_accuracy(y, proba)), recall


# Classify


def read_model(path: Path) -> Pipeline:
    """Read a model of `fit_model`."""
    wanted = f"{str(path)!r} must be a model of spectra; make one with: dipedl spectra fit"
    if not path.is_file():
        raise ValueError(f"{wanted}, but there is no such file")
    model = load(path)
    if not (isinstance(model, Pipeline) and isinstance(model[-1], DIPClassifier)):
        raise ValueError(f"{wanted}, but it holds a {type(model).__name__}")
    return model


def classify(model: Pipeline, batch: Batch, rate: float) -> tuple[pd.DataFrame, list[Failure]]:
    """Return a line for each file, and what failed; a line without an answer has the reason.

    Unknown is a spectrum whose p-value does not exceed the false-alarm rate.
    """
    spectra, files = batch.spectra, batch.read
    refused = feature_failures(model, spectra.flux)
    failures = [*spectra.failures, *(Failure(files[i], None, of) for i, of in refused.items())]
    kept = [i for i in range(len(files)) if i not in refused]
    classes = model[-1].classes_
    shares = probability_names([str(name) for name in classes])
    lines: dict[str, Any] = {
        "name": "" if spectra.name is None else [one_line(spectra.name[i]) for i in kept],
        "file": [one_line(files[i]) for i in kept],
        "header_class": batch.header_classes[kept],
        "snr": np.nan if spectra.snr is None else spectra.snr[kept],
    }
    if kept:
        answers = model[-1].answers(model[:-1].transform(spectra.flux[kept]))
        mean, p_values = answers.dirichlet.mean, answers.p_values
        lines |= dict(zip(shares, mean.T, strict=True))
        lines |= {
            "predicted": classes[mean.argmax(axis=1)].astype(str),
            "vacuity": answers.dirichlet.vacuity,
        }
        lines |= {"p_value": p_values, "unknown": np.where(p_values <= rate, "yes", "no")}
    failed = {
        "name": [one_line(Path(failure.file).name) for failure in failures],
        "file": [one_line(failure.file) for failure in failures],
        "reason": [one_line(failure.reason) for failure in failures],
    }
    place = {file: i for i, file in enumerate(batch.files)}
    good = pd.DataFrame(lines, index=[place[files[i]] for i in kept])
    bad = pd.DataFrame(failed, index=[place[failure.file] for failure in failures])
    both = pd.concat([some for some in (good, bad) if len(some)])
    columns = ["name", "file", "header_class", "snr", *shares]
    columns += ["predicted", "vacuity", "p_value", "unknown", "reason"]
    return both.sort_index().reindex(columns=columns), failures


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


def write_lines(table: pd.DataFrame, file: Any, *, header: bool) -> None:
    """Add lines of `classify` to a CSV file that is open for bytes."""
    # No spreadsheet takes a text for a formula.
    texts = table[["name", "file", "header_class", "predicted", "reason"]].map(cell, "ignore")
    snr = table["snr"].map("{:.2f}".format, "ignore")
    lines = table.assign(**texts, snr=snr).to_csv(
        header=header, index=False, float_format="%.6f", lineterminator="\n"
    )
    file.write(lines.encode())


def count_predictions(table: pd.DataFrame, classes: Sequence[str]) -> pd.DataFrame:
    """Return the counts of predictions, unknown last, by the class in the headers."""
    predicted = table["predicted"].where(table["unknown"] == "no", "unknown")
    kinds = table["header_class"].replace("", "no class").rename("in the header")
    counts = pd.crosstab(kinds, predicted)
    others = sorted({*kinds} - {*classes, "no class"})
    order = [name for name in (*classes, *others, "no class") if name in counts.index]
    made = counts.reindex(index=order, columns=[*classes, "unknown"], fill_value=0)
    return made.rename_axis(index=None, columns="in the header")
