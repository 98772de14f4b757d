"""Detectors that look at no shape: how far an OOD set can be told without any model.

An OOD image whose border is not black, or which holds more ink than a digit, is recognised without
a model. A photograph has neither a black frame nor ink; what can tell it is how bright, coloured,
smooth or rich in contrast it is. Where these detectors do well, a high AUROC says little about a
method.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..datasets.splits import LOADERS, make_splits
from ..results.files import read_file
from ..results.scores import RANKED
from ..results.store import Store
from ..writing import error_text, write_file
from .table import BenchTable, Line, cell_over_seeds

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
    detectors = _COLOUR_DETECTORS if coloured else DETECTORS
    return _lines({title: _numbers(of, images, reference) for title, of in detectors.items()})


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
        lines = {
            line.title: {name: (cell.mean, cell.baseline) for name, cell in line.cells.items()}
            for line in _computed(config, seen["seed"])
        }
        kept = {"data": config, "lines": lines}
        write_file(path, json.dumps(kept))
    return _lines(kept["lines"])


def with_trivial(table: BenchTable, store: Store) -> tuple[BenchTable, str]:
    """The table with the trivial detectors, and why there are none if so."""
    try:
        return replace(table, trivial=stored_trivial_lines(store)), ""
    except (LookupError, OSError, ImportError) as error:
        return table, error_text(error)


def _kept(path: Path) -> dict[str, Any]:
    """Return the content of the file; nothing if it is damaged, for it is soon made again."""
    try:
        found = read_file(path)
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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


def _numbers(
    detect: Detector, images: Mapping[str, np.ndarray], reference: np.ndarray
) -> dict[str, tuple[float, float | None]]:
    """Value of each metric of each OOD set, and that of guessing."""
    u_in, found = detect(images["test"], reference), {}
    for split in (name for name in images if name != "test"):
        u_out = detect(images[split], reference)
        for kind, metric in RANKED.items():
            guessing = metric.baseline(u_in, u_out) if metric.baseline else None
            found[f"{kind}/{split.removeprefix('ood/')}"] = metric(u_in, u_out), guessing
    return found


def _lines(
    numbers: Mapping[str, Mapping[str, tuple[float, float | None]]],
) -> tuple[Line, ...]:
    return tuple(
        Line(
            title.replace(" ", "-"),
            title,
            {name: cell_over_seeds([value], baseline=b) for name, (value, b) in of.items()},
        )
        for title, of in numbers.items()
    )


def _checked(images: np.ndarray) -> np.ndarray:
    if np.ndim(images) != 4:
        raise ValueError(
            "images must have shape (n, channels, height, width), got "
            f"{np.shape(images)}; reshape rows of pixels first"
        )
    return images
