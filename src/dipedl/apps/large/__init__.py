"""Data larger than memory: cut into parts, worked on by this machine or by a Ray cluster."""

from .fitting import Ask, Fitted, fit, like
from .local import LocalEngine
from .parts import Part, PartStream, parts_of
from .plans import Plan, plan
from .protocol import Engine
from .ray import RayEngine
from .scoring import Accounting, score

__all__ = [
    "Accounting",
    "Ask",
    "Engine",
    "Fitted",
    "LocalEngine",
    "Part",
    "PartStream",
    "Plan",
    "RayEngine",
    "fit",
    "like",
    "parts_of",
    "plan",
    "score",
]
