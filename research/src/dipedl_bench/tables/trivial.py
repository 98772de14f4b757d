"""Detectors that look at no shape: how far an OOD set can be told without any model.

An OOD image whose border is not black, or which holds more ink than a digit, is recognised without
a model. A photograph has neither a black frame nor ink; what can tell it is how bright, coloured,
smooth or rich in contrast it is. Where these detectors do well, a high AUROC says little about a
method.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dipedl.writing.cells import error_text
from dipedl.writing.files import write_file

from ..datasets.splits import LOADERS, make_splits
from ..results.damage import read_json
from ..results.scores import RANKED
from ..results.store import Store
from .table import BenchTable, Cell, Line, cell_over_seeds

Detector = Callable[[np.ndarray, np.ndarray], np.ndarray]
_RGB = 3
#: Training images that the means of photographs are taken over; the first ones.
_ROWS = 5000


def border_ink(images: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Mean of the outermost pixels, shape (n,), of images (n, channels, height, width) in [0, 1].

    MNIST digits stand in the middle of a black frame, so ink there is taken to mean "no digit".
    `reference` is not looked at; detectors are called alike.
    """
    border = np.ones(_checked(images).shape[1:], dtype=bool)
    border[:, 1:-1, 1:-1] = False
    return np.asarray(images[:, border].mean(axis=1, dtype=np.float64))


def ink(images: np.ndarray, reference: np.ndarray | None = None) -> np.ndarray:
    """Mean of all pixels, shape (n,): the brighter, the less a digit. Parameters as above."""
    return np.asarray(_checked(images).mean(axis=(1, 2, 3), dtype=np.float64))


def unusual_ink(images: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Distance of the mean of all pixels from that of the training images, shape (n,)."""
    return np.abs(ink(images) - float(np.mean(reference, dtype=np.float64)))


#: Title of a detector -> ``(images, training images)`` to uncertainty (n,), higher = less a digit.
#: The direction of each was fixed beforehand; none was turned round to suit a set.
DETECTORS: dict[str, Detector] = {
    "border ink": border_ink,
    "mean intensity": ink,
    "unusual mean intensity": unusual_ink,
}


def _roughness(images: np.ndarray) -> np.ndarray:
    """Mean difference between neighbours."""
    down = np.abs(np.diff(images, axis=2)).mean(axis=(1, 2, 3), dtype=np.float64)
    right = np.abs(np.diff(images, axis=3)).mean(axis=(1, 2, 3), dtype=np.float64)
    return np.asarray((down + right) / 2)


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


#: Those for photographs; training images have the shape of images.
_COLOUR_DETECTORS: dict[str, Detector] = {
    "unusual brightness": _unusual(ink),
    "unusual contrast": _unusual(lambda images: images.std(axis=(1, 2, 3), dtype=np.float64)),
    "unusual roughness": _unusual(_roughness),
    "unusual colour": _unusual(_colour),
}


def trivial_lines(images: Mapping[str, np.ndarray], reference: np.ndarray) -> tuple[Line, ...]:
    """A line of the table for each detector.

    `images` are (n, channels, height, width) by split: "test" and every OOD set
    ``ood/<name>``; `reference` are training images.
    """
    coloured = np.ndim(reference) == 4 and reference.shape[1] == _RGB
    return tuple(
        Line(title.replace(" ", "-"), title, dict(_cells(detect, images, reference)))
        for title, detect in (_COLOUR_DETECTORS if coloured else DETECTORS).items()
    )


def stored_trivial_lines(store: Store) -> tuple[Line, ...]:
    """Lines of the trivial detectors on the images that the rows of a store were scored on.

    Images are loaded once; the numbers are kept in ``trivial.json`` beside the rows.
    """
    seen = next((row for row in store.rows() if "data" in row["config"]), None)
    if seen is None:
        raise LookupError(f"no row in {str(store.folder)!r} says which data it saw")
    config, path = seen["config"]["data"], store.folder / "trivial.json"
    kept = _kept(path)
    if kept.get("data") != config:
        lines = _computed(config, seen["seed"])
        values = {line.title: _plain(line) for line in lines}
        kept = {"data": config, "lines": values}
        write_file(path, json.dumps(kept))
    return tuple(_read(title, cells) for title, cells in kept["lines"].items())


def _kept(path: Path) -> dict[str, Any]:
    """Return the content of the file; nothing if it is damaged, for it is soon made again."""
    try:
        found = read_json(path)
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def with_trivial(table: BenchTable, store: Store) -> tuple[BenchTable, str]:
    """The table with the trivial detectors, and why there are none if so."""
    try:
        return replace(table, trivial=stored_trivial_lines(store)), ""
    except (LookupError, OSError, ImportError) as error:
        return table, error_text(error)


def _computed(config: Mapping[str, Any], seed: int) -> tuple[Line, ...]:
    load = LOADERS.get(config["dataset"])
    shape = None if load is None else load(tuple(config["ood"])).image_shape
    if shape is None:
        raise LookupError("trivial detectors need images; this data set has none")
    planes = (1, *shape) if len(shape) == 2 else shape
    images = {s: X.reshape(-1, *planes) for s, X in make_splits(config, seed).X.items()}
    reference = images.pop("train")
    images.pop("validation")
    return trivial_lines(images, reference)


def _plain(line: Line) -> dict[str, list[float | None]]:
    return {name: [cell.mean, cell.baseline] for name, cell in line.cells.items()}


def _read(title: str, cells: Mapping[str, tuple[float, float | None]]) -> Line:
    found = {name: cell_over_seeds([value], baseline=b) for name, (value, b) in cells.items()}
    return Line(title.replace(" ", "-"), title, found)


def _cells(
    detect: Detector, images: Mapping[str, np.ndarray], reference: np.ndarray
) -> Iterator[tuple[str, Cell]]:
    u_in = detect(images["test"], reference)
    for split, X in images.items():
        if split != "test":
            name, u_out = split.removeprefix("ood/"), detect(X, reference)
            for kind, metric in RANKED.items():
                value, guessing = metric(u_in, u_out), metric.baseline
                baseline = guessing(u_in, u_out) if guessing else None
                yield f"{kind}/{name}", cell_over_seeds([value], baseline=baseline)


def _checked(images: np.ndarray) -> np.ndarray:
    if np.ndim(images) != 4:
        raise ValueError(
            "images must have shape (n, channels, height, width), got "
            f"{np.shape(images)}; reshape rows of pixels first"
        )
    return images
