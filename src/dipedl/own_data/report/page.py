"""The report page: the demo's style, legends and panels, with the numbers of a user's table."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._version import __version__
from ...demo.report.inline import templates
from ..findings import diagnosed
from ..measuring import Measured
from .advice import headline, next_steps
from .figures import PAIR, RANKINGS, evidence, reliability, selection, sets

__all__ = ["render"]


def render(found: Measured, test: str, model: str) -> str:
    """The page as HTML text; `test` and `model` are the names of the files."""
    template = templates("dipedl.own_data.report").get_template("own_data.html.j2")
    return template.render(_values(found, test, model))


def _values(found: Measured, test: str, model: str) -> dict[str, Any]:
    known = None if found.truth is None else np.asarray(found.truth) >= 0
    return {
        "version": __version__,
        "test": test,
        "model": model,
        "target": found.model.target,
        "facts": found.model.facts,
        "held_out": found.model.facts["held_out"],
        "headline": headline(found),
        "steps": next_steps(found),
        "found": found,
        "pair": PAIR,
        "rankings": RANKINGS,
        "sets": sets(found),
        "reliability": [] if known is None else [reliability(found, known)],
        "selection": [] if known is None else [selection(found, known)],
        "evidence": list(evidence(found)),
        "diagnosis": diagnosed(found.model.classifier),
    }
