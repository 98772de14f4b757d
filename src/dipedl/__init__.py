"""dipedl: an honest "I don't know" on any classifier.

A classifier gives class probabilities p(x), a density model gives log p(x); together they give a
Dirichlet with ``concentration = prior + n * gamma * exp(z(x)) * p(x)``: confident where data was
seen, back to the prior where it was not.
"""

from pathlib import Path
from typing import TYPE_CHECKING

from ._version import __version__ as __version__
from .protocols import lazy_attributes

if TYPE_CHECKING:
    from . import baselines, datasets, density, metrics, networks, plots, pretrained
    from .apps.monitor import DriftMonitor
    from .classifier import DIPClassifier
    from .decisions.pipelines import (
        decide,
        p_value,
        predict_dirichlet,
        predict_ood,
        predict_set,
        predict_with_reject,
        uncertainty,
    )
    from .detector import OODDetector
    from .dirichlet import Dirichlet
    from .explanation import diagnose, explain
    from .io.model_file import load, save
    from .io.onnx import export_onnx
    from .pretrained import DIPModule

__all__ = [
    "DIPClassifier",
    "DIPModule",
    "Dirichlet",
    "DriftMonitor",
    "OODDetector",
    "baselines",
    "datasets",
    "decide",
    "density",
    "diagnose",
    "explain",
    "export_onnx",
    "load",
    "metrics",
    "networks",
    "p_value",
    "plots",
    "predict_dirichlet",
    "predict_ood",
    "predict_set",
    "predict_with_reject",
    "pretrained",
    "save",
    "uncertainty",
]

_HOME = {
    "DIPClassifier": "classifier",
    "DIPModule": "pretrained",
    "Dirichlet": "dirichlet",
    "DriftMonitor": "apps.monitor",
    "OODDetector": "detector",
    "decide": "decisions.pipelines",
    "diagnose": "explanation",
    "explain": "explanation",
    "export_onnx": "io.onnx",
    "load": "io",
    "p_value": "decisions.pipelines",
    "predict_dirichlet": "decisions.pipelines",
    "predict_ood": "decisions.pipelines",
    "predict_set": "decisions.pipelines",
    "predict_with_reject": "decisions.pipelines",
    "save": "io",
    "uncertainty": "decisions.pipelines",
}
__getattr__, __dir__ = lazy_attributes(
    __name__, Path(__file__).parent, _HOME, [*__all__, "__version__"]
)
