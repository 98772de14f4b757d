"""Modules that define the types that a file may name.

The name of a type in a file stays when the module that defines the type moves. A module is imported
only when a file names one of its types, or a class that is saved may be one of them.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pathlib import Path

from ..plugins import public_names

_PACKAGE = __name__.partition(".")[0]
#: Name in a file -> module that defines the type; below this package where it starts with a dot.
_TYPES = {
    "DIPClassifier": ".classifier",
    "OODDetector": ".detector",
    "EvidenceModel": ".evidence_model",
    "calibration.HeldOut": ".held_out",
    "calibration.Rehearsal": ".calibration.rehearsal",
    "calibration.Temperature": ".calibration.temperature",
    "density.NormalScores": ".density.ensemble",
    "density.Reach": ".density.ensemble",
    "fitting.DenseRows": ".features.pipelines",
    "fitting.InputColumns": ".columns",
    "gaussians.BasisFactors": ".gaussians.factor",
    "gaussians.BasisMoments": ".gaussians.moments",
    "gaussians.GaussianFactor": ".gaussians.factor",
    "gaussians.Moments": ".gaussians.moments",
    "gaussians.HigherMoments": ".gaussians.moments",
    "gaussians.ThinWhitener": ".gaussians.factor",
    "gaussians.TiedFactors": ".gaussians.factor",
    "gaussians.TiedMoments": ".gaussians.moments",
    "monitoring.ColumnBins": ".apps.monitor.windows",
    "monitoring.DriftMonitor": ".apps.monitor.drift_monitor",
    "monitoring.Estimate": ".apps.monitor.windows",
    "monitoring.OpenWindow": ".apps.monitor.windows",
    "monitoring.ReferenceRanks": ".apps.monitor.bets",
    "monitoring.Sums": ".apps.monitor.windows",
    "monitoring.Wealth": ".apps.monitor.bets",
    "monitoring.Window": ".apps.monitor.windows",
    # The transformers of spectra, but not the functions and the containers beside them.
    "spectra.BlockStatistics": ".apps.spectra.features",
    "spectra.EnergyNormalizer": ".apps.spectra.features",
    "spectra.LineMeans": ".apps.spectra.features",
    "spectra.PrincipalComponents": ".apps.spectra.features",
    "spectra.SavitzkyGolay": ".apps.spectra.features",
    "streaming.RowSample": ".streaming",
    "streaming.Stream": ".streaming",
}
#: Name in a file -> name of the class, where the class has got another one since.
_RENAMED = {"fitting.InputColumns": "Columns"}
#: Folders whose public classes are found by their names.
_FOLDERS = ("density", "evidence", "preprocessing")


@cache
def own_types() -> dict[str, str]:
    """Return the full name of the module that defines each type of ours, by its name in a file."""
    found = dict(_TYPES)
    for folder in _FOLDERS:
        names = public_names(Path(__file__).parents[1] / folder)
        found |= {f"{folder}.{name}": f".{folder}.{home}" for name, home in names.items()}
    return {name: _PACKAGE + home for name, home in found.items()}


def is_type(cls: type, module: str, name: str) -> bool:
    """Return whether a module, imported only if it is of the same package, defines this class."""
    own = cls.__module__.partition(".")[0]
    if cls.__name__ != name or module.partition(".")[0] != own:
        return False
    try:
        return _attribute(module, name) is cls
    except ImportError:
        return False


@cache
def _attribute(module: str, name: str) -> object:
    return getattr(import_module(module), name, None)


def class_of(name: str) -> str:
    """Return the name of the class behind a name in a file."""
    return _RENAMED.get(name, name.rpartition(".")[2])


def is_own_type(cls: type, name: str) -> bool:
    """Return whether a class is the one of ours of this name in a file."""
    return is_type(cls, own_types()[name], class_of(name))
