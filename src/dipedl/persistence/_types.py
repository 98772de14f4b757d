"""The closed table of types that a file may name.

The name of a type in a file stays when the module that defines the type moves. The table is made
from the code, never from a file, and a module is imported only when a file names one of its types.
"""

from __future__ import annotations

import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from .._plugins import public_names
from .codecs import CODECS, POOLS

_PACKAGE = __name__.partition(".")[0]
#: Name in a file -> module that defines the type; below this package where it starts with a dot.
_HOMES = {
    "DIPClassifier": ".classifier",
    "OODDetector": ".detector",
    "EvidenceModel": ".evidence_model",
    "calibration.HeldOut": ".calibration.held_out",
    "calibration.Rehearsal": ".calibration.rehearsal",
    "calibration.Temperature": ".calibration.temperature",
    "density.NormalScores": ".density.combined._normal_scores",
    "density.Reach": ".density.combined._reach",
    "fitting.DenseRows": ".features.dense_rows",
    "fitting.InputColumns": ".inputs",
    "gaussians.BasisFactors": ".gaussians.by_class",
    "gaussians.BasisMoments": ".gaussians.by_class",
    "gaussians.GaussianFactor": ".gaussians.factor",
    "gaussians.Moments": ".gaussians.moments",
    "gaussians.HigherMoments": ".gaussians.moments",
    "gaussians.ThinWhitener": ".gaussians.factor",
    "gaussians.TiedFactors": ".gaussians.by_class",
    "gaussians.TiedMoments": ".gaussians.by_class",
    "monitoring.ColumnBins": ".monitoring._columns",
    "monitoring.DriftMonitor": ".monitoring.drift_monitor",
    "monitoring.Estimate": ".monitoring._accuracy",
    "monitoring.OpenWindow": ".monitoring._windows",
    "monitoring.ReferenceRanks": ".monitoring._ranks",
    "monitoring.Sums": ".monitoring._accuracy",
    "monitoring.Wealth": ".monitoring._betting",
    "monitoring.Window": ".monitoring._windows",
    # The transformers of spectra, but not the functions and the containers beside them.
    "spectra.BlockStatistics": ".spectra.features.blocks",
    "spectra.EnergyNormalizer": ".spectra.features.energy",
    "spectra.LineMeans": ".spectra.features.line_means",
    "spectra.PrincipalComponents": ".spectra.features.components",
    "spectra.SavitzkyGolay": ".spectra.features.smoothing",
    "streaming.RowSample": ".streaming.row_sample",
    "streaming.Stream": ".streaming.stream",
}
#: Folders whose public classes are found by their names.
_FOLDERS = ("density", "evidence", "preprocessing")


@cache
def _homes() -> dict[str, str]:
    """Name in a file of a type of ours -> full name of the module that defines it."""
    found = dict(_HOMES)
    for folder in _FOLDERS:
        names = public_names(Path(__file__).parents[1] / folder)
        found |= {f"{folder}.{name}": f".{folder}.{home}" for name, home in names.items()}
    return {name: _PACKAGE + home for name, home in found.items() if name in CODECS}


@cache
def _all_homes() -> dict[str, str]:
    """Name in a file -> full name of the module, also of the types of other packages."""
    foreign = {name: name.rpartition(".")[0] for name in (*CODECS, *POOLS)}
    return foreign | _homes()


def _class_of(name: str) -> str:
    return name.rpartition(".")[2]


@cache
def _by_class() -> dict[str, list[str]]:
    """Name of a class -> the names in a file that end in it."""
    found: dict[str, list[str]] = {}
    for name in _all_homes():
        found.setdefault(_class_of(name), []).append(name)
    return found


def type_name(cls: type) -> str | None:
    """The name of a type in a file; None for a type that is not in the table."""
    for name in _by_class().get(cls.__name__, ()):
        # A class exists only where its module is loaded already.
        if getattr(sys.modules.get(_all_homes()[name]), cls.__name__, None) is cls:
            return name
    return None


def is_ours(name: str) -> bool:
    """Whether the name of a type in a file is one of this package."""
    return name in _homes()


def lookup(name: Any) -> type:
    """The type that a file names; ValueError if the table has no such name."""
    if not isinstance(name, str) or name not in _all_homes():
        raise ValueError(f"the type {name!r} is not one that a model may hold")
    home = _all_homes()[name]
    try:
        found: type = getattr(import_module(home), _class_of(name))
    except (ImportError, AttributeError) as error:
        package = home.partition(".")[0]
        raise ValueError(f"the type {name} needs {package}, as it was saved: {error}") from error
    return found
