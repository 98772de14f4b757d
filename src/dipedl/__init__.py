"""dipedl: an honest "I don't know" on any classifier.

A classifier gives class probabilities p(x), a density model gives log p(x); together they give a
Dirichlet with ``concentration = prior + n * gamma * exp(z(x)) * p(x)``: confident where data was
seen, back to the prior where it was not.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._plugins import explain_missing

if TYPE_CHECKING:
    from . import baselines, datasets, density, metrics, nn, plots, pretrained
    from .classifier import DIPClassifier
    from .detector import OODDetector
    from .dirichlet import Dirichlet
    from .export import export_onnx
    from .persistence.model_file import load, save
    from .pretrained import DIPModule

__version__ = "0.2.0"
__all__ = [
    "DIPClassifier",
    "DIPModule",
    "Dirichlet",
    "OODDetector",
    "baselines",
    "datasets",
    "density",
    "export_onnx",
    "load",
    "metrics",
    "nn",
    "plots",
    "pretrained",
    "save",
]

_HOME = {
    "DIPClassifier": "classifier",
    "DIPModule": "pretrained",
    "Dirichlet": "dirichlet",
    "OODDetector": "detector",
    "export_onnx": "export",
    "load": "persistence",
    "save": "persistence",
}
_MODULES = {
    "baselines",
    "bench",
    "calibration",
    "datasets",
    "decisions",
    "demo",
    "density",
    "diagnostics",
    "evidence",
    "explanation",
    "export",
    "gaussians",
    "maths",
    "metrics",
    "nn",
    "persistence",
    "plots",
    "preprocessing",
    "pretrained",
    "protocols",
    "spectra",
    "testing",
    "theory",
}


def __getattr__(name: str) -> Any:
    try:
        if name in _HOME:
            return getattr(import_module(f".{_HOME[name]}", __name__), name)
        if name in _MODULES:
            return import_module(f".{name}", __name__)
    except ImportError as error:
        raise explain_missing(error, f"dipedl.{name}") from error
    raise AttributeError(f"module 'dipedl' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_MODULES, "__version__"})
