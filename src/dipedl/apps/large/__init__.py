"""Data larger than memory: cut into parts, worked on by this machine or by a Ray cluster."""

from .engines import Engine, LocalEngine, RayEngine, Tree
from .fitting import LargeFit, fit, like
from .parts import Part, parts_of
from .plans import Plan, plan
from .scoring import Accounting, score

__all__ = [
    "Accounting",
    "Engine",
    "LargeFit",
    "LocalEngine",
    "Part",
    "Plan",
    "RayEngine",
    "Tree",
    "fit",
    "like",
    "parts_of",
    "plan",
    "score",
]
