"""The demo: several classifiers, with and without a density, on the bundled images.

This package computes; `dipedl.cli` prints the result, `dipedl.demo.report` makes an HTML page.
"""

from .models import MODELS, default_models
from .result import (
    DemoResult,
    Explained,
    ModelResult,
    MoonMaps,
    Receipt,
    Row,
    SetAnswers,
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
    "SetAnswers",
    "SetScore",
    "default_models",
    "run",
    "stages",
]
