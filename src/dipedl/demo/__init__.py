"""The demo: several classifiers, with and without a density, on the bundled images.

Computing only. `dipedl.cli` prints the result, `dipedl.demo.report` makes a page of it.
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
