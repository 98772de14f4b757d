"""Models for a look at the service, of bundled data alone: digits to draw, and flowers."""

from __future__ import annotations

import atexit
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from ...classifier import DIPClassifier
from ..demo import halved_digits
from ..table.fit import FitRequest, fit_table
from ..table.reading import ROWS, Format, FrameTable
from ..table.table_model import save_model
from .models import Models
from .schemas import Pictures

DIGITS, FLOWERS = "digits", "iris"
#: Rows of a window of drift: a visitor sends hundreds.
WINDOW = 100
_EXAMPLES = 200


def demo_models() -> tuple[Models, dict[str, Pictures]]:
    """Return the models of the demo, fitted now, and the pictures beside them, by name."""
    # More threads gain little on small matrices, and much is lost where cores are busy.
    directory = TemporaryDirectory(prefix="dipedl-")
    atexit.register(directory.cleanup)
    with threadpool_limits(1):
        paths = {name: Path(directory.name, f"{name}.dipedl") for name in (DIGITS, FLOWERS)}
        pictures = {DIGITS: _fit_digits(paths[DIGITS])}
        _fit_flowers(paths[FLOWERS])
        return Models(paths), pictures


def _fit_digits(path: Path) -> Pictures:
    data = halved_digits()
    clf = DIPClassifier(LogisticRegression(max_iter=300), random_state=0)
    clf.fit(data.X_train, data.y_train).save(path)
    height, width = data.image_shape or (1, 1)
    examples = {
        "digits": data.X_test,
        "Japanese letters": data.ood["kmnist"],
        "letters of other scripts": data.ood["omniglot_inverted"],
    }
    few = {}
    for name, X in examples.items():
        some = np.linspace(0, len(X) - 1, _EXAMPLES).astype(int)
        few[name] = _bytes(X[np.random.default_rng(0).permutation(some)])
    return Pictures(height, width, _bytes(data.X_train), data.y_train.astype(str).tolist(), few)


def _bytes(X: np.ndarray) -> np.ndarray:
    return np.asarray(np.rint(X * 255), dtype=np.uint8)


def _fit_flowers(path: Path) -> None:
    iris = load_iris(as_frame=True)
    frame = iris.data.assign(species=iris.target_names[iris.target])
    table = FrameTable(Path("iris"), Format(ROWS), tuple(frame.columns), frame=frame)
    save_model(fit_table(table, FitRequest("species", "linear")).model, path)
