"""The demo: several classifiers, with and without a density, on the bundled images.

This package computes; `dipedl.apps.cli` prints the result, `dipedl.apps.demo.report` makes an
HTML page.
"""

from .models import MODELS, default_models
from .result import (
    DemoResult,
    Explained,
    ModelResult,
    MoonMaps,
    Receipt,
    Row,
    SetPredictions,
    SetScore,
)
from .runner import run, stages

__all__ = [
    "MODELS",
    "DemoResult",
    "Explained",
    "ModelResult",
    "MoonMaps",
    "Receipt",
    "Row",
    "SetPredictions",
    "SetScore",
    "default_models",
    "run",
    "stages",
]
