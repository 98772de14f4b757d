"""Detectors that look at no shape: how far an OOD set can be told without any model.

An OOD image whose border is not black, or which holds more ink than a digit, is recognised without
a model. A photograph has neither a black frame nor ink; what can tell it is how bright, coloured,
smooth or rich in contrast it is. Where these detectors do well, a high AUROC says little about a
method.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from dipedl.writing import error_text, write_file

from ..datasets.splits import LOADERS, make_splits
from ..results.files import read_file
from ..results.scores import RANKED
from ..results.store import Store
from .table import BenchTable, Line, estimate

#: Images (n, channels, height, width) and training images to uncertainty (n,); higher: less known.
Detector = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: Training images that the means of photographs are taken over; the first ones.
_ROWS = 5000


def border_ink(images: np.ndarray) -> np.ndarray:
    """Return the mean of the outermost pixels, (n,), of images (n, channels, height, width).

    MNIST digits stand in the middle of a black frame, so ink there is taken to mean "no digit".
    """
    border = np.ones(images.shape[1:], dtype=bool)
    border[:, 1:-1, 1:-1] = False
    return np.asarray(images[:, border].mean(axis=1, dtype=np.float64))


def ink(images: np.ndarray) -> np.ndarray:
    """Return the mean of all pixels, shape (n,): the brighter, the less a digit."""
    return np.asarray(images.mean(axis=(1, 2, 3), dtype=np.float64))


def _contrast(images: np.ndarray) -> np.ndarray:
    return np.asarray(images.std(axis=(1, 2, 3), dtype=np.float64))


def _roughness(images: np.ndarray) -> np.ndarray:
    """Mean difference between neighbours, below and to the right."""
    of = [np.abs(np.diff(images, axis=a)).mean((1, 2, 3), dtype=np.float64) for a in (2, 3)]
    return np.asarray((of[0] + of[1]) / 2)


def _colour(images: np.ndarray) -> np.ndarray:
    """Mean of each channel less that of all, shape (n, channels)."""
    channels = images.mean(axis=(2, 3), dtype=np.float64)
    return np.asarray(channels - channels.mean(axis=1, keepdims=True))


def _unusual(measure: Callable[[np.ndarray], np.ndarray]) -> Detector:
    """Distance from the mean over the training images: no direction is chosen."""

    def detect(images: np.ndarray, reference: np.ndarray) -> np.ndarray:
        away = measure(images) - measure(reference[:_ROWS]).mean(axis=0)
        return np.asarray(np.abs(away) if away.ndim == 1 else np.linalg.norm(away, axis=1))

    return detect


#: Detectors by title, of grey images and of photographs. The direction of each was fixed
#: beforehand; none was turned round to suit a set.
DETECTORS: dict[str, Detector] = {
    "border ink": lambda images, reference: border_ink(images),
    "mean intensity": lambda images, reference: ink(images),
    "unusual mean intensity": lambda images, reference: np.abs(
        ink(images) - float(np.mean(reference, dtype=np.float64))
    ),
}
COLOUR_DETECTORS: dict[str, Detector] = {
    "unusual brightness": _unusual(ink),
    "unusual contrast": _unusual(_contrast),
    "unusual roughness": _unusual(_roughness),
    "unusual colour": _unusual(_colour),
}


def trivial_lines(images: Mapping[str, np.ndarray], reference: np.ndarray) -> tuple[Line, ...]:
    """Return a line of the table for each detector.

    `images` are (n, channels, height, width) by split: "test" and every OOD set
    ``ood/<name>``; `reference` are training images.
    """
    lines = []
    for title, detect in (DETECTORS if reference.shape[1] == 1 else COLOUR_DETECTORS).items():
        u, cells = {split: detect(of, reference) for split, of in images.items()}, {}
        for split in (name for name in u if name != "test"):
            for kind, metric in RANKED.items():
                value = metric(u["test"], u[split])
                cells[f"{kind}/{split.removeprefix('ood/')}"] = estimate([value])
        lines.append(Line(title.replace(" ", "-"), title, cells))
    return tuple(lines)


def load_trivial_lines(store: Store) -> tuple[Line, ...]:
    """Return lines of the trivial detectors on the images that a store's rows were scored on.

    Images are loaded once; the numbers are kept in ``trivial.json`` beside the rows.
    """
    seen = next((row for row in store.rows() if "data" in row["config"]), None)
    if seen is None:
        raise LookupError(f"no row in {str(store.folder)!r} says which data it saw")
    config, path = seen["config"]["data"], store.folder / "trivial.json"
    with suppress(FileNotFoundError, ValueError):  # damaged: it is soon made again
        stored = read_file(path)
        if isinstance(stored, dict) and stored.get("data") == config:
            return tuple(
                Line(
                    title.replace(" ", "-"),
                    title,
                    # published files have the value of guessing beside each
                    {name: estimate([np.ravel(value)[0]]) for name, value in of.items()},
                )
                for title, of in stored["lines"].items()
            )
    lines = _compute(config, seen["seed"])
    numbers = {ln.title: {k: c.mean for k, c in ln.cells.items()} for ln in lines}
    write_file(path, json.dumps({"data": config, "lines": numbers}))
    return lines


def add_trivial(table: BenchTable, store: Store) -> tuple[BenchTable, str]:
    """Return the table with the trivial detectors, and why there are none if so."""
    try:
        return replace(table, trivial=load_trivial_lines(store)), ""
    except (LookupError, OSError, ImportError) as error:
        # of a failed download the names of all mirrors follow
        return table, error_text(error).splitlines()[0]


def _compute(config: Mapping[str, Any], seed: int) -> tuple[Line, ...]:
    load = LOADERS.get(config.get("dataset", ""))  # arrays of one's own have none
    shape = None if load is None else load(tuple(config["ood"])).image_shape
    if shape is None:
        raise LookupError("trivial detectors need images; this data set has none")
    planes = (1, *shape) if len(shape) == 2 else shape
    images = {s: X.reshape(-1, *planes) for s, X in make_splits(config, seed).X.items()}
    reference = images.pop("train")
    images.pop("validation")
    return trivial_lines(images, reference)
