"""Results of the demo: arrays for figures, rows for tables, a receipt for both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ...datasets import Dataset
from ...dirichlet import Dirichlet
from ...explanation import Card, Diagnosis
from ...writing.files import write_file
from ...writing.numbers import plain


@dataclass(frozen=True, eq=False)
class SetPredictions:
    """Predictions of one classifier for one set of n inputs.

    Attributes
    ----------
    bare : ndarray, shape (n, k)
        Class probabilities of the classifier alone.
    dirichlet : Dirichlet
        DIP-EDL's posterior; its mean are DIP-EDL's class probabilities.
    scores : mapping of str to ndarray, shape (n,)
        Uncertainty by method, higher is less sure.
    flagged : ndarray of bool, shape (n,)
        Inputs that ``predict_ood`` calls out-of-distribution.
    """

    bare: np.ndarray
    dirichlet: Dirichlet
    scores: Mapping[str, np.ndarray]
    flagged: np.ndarray


@dataclass(frozen=True, eq=False)
class Explained:
    """A row of a set, "ID" or one of the OOD sets, with the explanation of its prediction."""

    key: str
    row: int
    card: Card


@dataclass(frozen=True, eq=False)
class ModelResult:
    """One classifier with its density; `on` has the test set as "ID" and every OOD set.

    `explained` holds the digit with the least evidence and the image of each OOD set with the most.
    """

    name: str
    title: str
    classifier: str
    density: str
    alarm_vacuity: float
    on: Mapping[str, SetPredictions]
    diagnosis: Diagnosis
    explained: tuple[Explained, ...]


@dataclass(frozen=True)
class SetScore:
    """Metrics of one uncertainty on one OOD set; None where they do not apply."""

    auroc: float
    auroc_low: float
    auroc_high: float
    aupr: float
    aupr_prevalence: float
    fpr95: float
    brier: float | None
    flagged: float | None


@dataclass(frozen=True)
class Row:
    """One line of the table: a classifier and an uncertainty, with the probabilities beside it.

    The columns for the test set and Brier scores are those of DIP-EDL's probabilities in the row of
    DIP-EDL and of the bare classifier's in the others; None for detectors without a classifier.
    All uncertainties of a classifier flag the same number of test inputs, but for ties.
    """

    model: str
    method: str
    accuracy: float | None
    brier: float | None
    nll: float | None
    ece: float | None
    flagged: float | None
    ood: Mapping[str, SetScore]


@dataclass(frozen=True, eq=False)
class MoonMaps:
    """Two moons: the training data and uncertainty on a grid over the plane.

    Attributes
    ----------
    X, y : ndarray, shapes (n, 2) and (n,)
        Training data.
    extent : tuple of float
        Left, right, bottom and top of the map.
    maps : mapping of str to ndarray, shape (h, w)
        By kind of uncertainty; row 0 is the bottom.
    classifier, density : str
        Description of what was fitted.
    """

    X: np.ndarray
    y: np.ndarray
    extent: tuple[float, float, float, float]
    maps: Mapping[str, np.ndarray]
    classifier: str
    density: str


@dataclass(frozen=True)
class Receipt:
    """Everything needed to compute the numbers again."""

    seed: int
    models: tuple[str, ...]
    n_train: int
    n_test: int
    n_ood: Mapping[str, int]
    n_resamples: int
    false_alarm_rate: float
    versions: Mapping[str, str]
    machine: str
    seconds: Mapping[str, float]


@dataclass(frozen=True, eq=False)
class DemoResult:
    """All results of the demo."""

    dataset: Dataset
    models: tuple[ModelResult, ...]
    rows: tuple[Row, ...]
    moons: MoonMaps
    receipt: Receipt

    def to_json(self) -> dict[str, Any]:
        """Rows, diagnoses and receipt as plain values for ``json.dump``; no arrays, NaN or inf."""
        return {
            "receipt": plain(asdict(self.receipt)),
            "rows": [plain(asdict(row)) for row in self.rows],
            "diagnoses": {model.name: plain(model.diagnosis.to_dict()) for model in self.models},
        }

    def write_json(self, path: str | Path) -> None:
        """Write `to_json` to a file."""
        text = json.dumps(self.to_json(), indent=2, ensure_ascii=False, allow_nan=False)
        write_file(path, text + "\n")
