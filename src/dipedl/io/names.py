"""Names of this library's types in a file; they stay when the module that defines a type moves.

A module is imported only when a file names one of its types, or a class that is saved may be one of
them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from ..plugins import public_names

_PACKAGE = __name__.partition(".")[0]
#: Module below this package -> names in a file, each of which ends in that of the class.
_TYPES = {
    "classifier": "DIPClassifier",
    "detector": "OODDetector",
    "evidence_model": "EvidenceModel",
    "held_out": "calibration.HeldOut",
    "calibration.rehearsal": "calibration.Rehearsal",
    "calibration.temperature": "calibration.Temperature",
    "density.ensemble": "density.NormalScores density.Reach",
    "features.pipelines": "fitting.DenseRows",
    "gaussians.factor": "gaussians.BasisFactors gaussians.GaussianFactor gaussians.ThinWhitener "
    "gaussians.TiedFactors",
    "gaussians.moments": "gaussians.BasisMoments gaussians.HigherMoments gaussians.Moments "
    "gaussians.TiedMoments",
    "apps.monitor.drift_monitor": "monitoring.DriftMonitor",
    "apps.monitor.bets": "monitoring.ReferenceRanks monitoring.Wealth",
    "apps.monitor.windows": "monitoring.ColumnBins monitoring.Estimate monitoring.OpenWindow "
    "monitoring.Sums monitoring.Window",
    # The transformers of spectra, but not the functions and the containers beside them.
    "apps.spectra.features": "spectra.BlockStatistics spectra.EnergyNormalizer spectra.LineMeans "
    "spectra.PrincipalComponents spectra.SavitzkyGolay",
    "streaming": "streaming.RowSample streaming.Stream",
}
#: Folders whose public classes are found by their names.
_FOLDERS = ("density", "evidence", "preprocessing")


@cache
def own_types() -> dict[str, str]:
    """Return the full name of each class of ours, by its name in a file."""
    found = {
        name: f"{_PACKAGE}.{home}.{name.rpartition('.')[2]}"
        for home, names in _TYPES.items()
        for name in names.split()
    }
    for folder in _FOLDERS:
        homes = public_names(Path(__file__).parents[1] / folder)
        found |= {f"{folder}.{n}": f"{_PACKAGE}.{folder}.{home}.{n}" for n, home in homes.items()}
    return found | {"fitting.InputColumns": f"{_PACKAGE}.columns.Columns"}


def find(path: str) -> Any:
    """Return the class or function of a full name."""
    home, _, name = path.rpartition(".")
    return getattr(import_module(home), name)


@cache
def _class_or_none(path: str) -> Any:
    """Return the class of a full name; None if its package is not installed."""
    try:
        return find(path)
    except (ImportError, AttributeError):
        return None


def is_type(cls: type, path: str) -> bool:
    """Return whether a class is the one of a full name, imported only if it may be."""
    mine, theirs = (of.partition(".")[0] for of in (cls.__module__, path))
    return (
        cls.__name__ == path.rpartition(".")[2] and mine == theirs and _class_or_none(path) is cls
    )


def is_own_type(cls: type, name: str) -> bool:
    """Return whether a class is the one of ours of this name in a file."""
    return is_type(cls, own_types()[name])
