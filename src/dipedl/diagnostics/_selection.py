"""Which density was chosen, how close the choice was, and which candidates failed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..calibration.held_out import HeldOut
from ..writing.finding import Finding, Number


def selection_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """The ranking of a density that chooses among candidates; nothing for others."""
    density = clf.evidence_.density_
    ranking: Sequence[Mapping[str, Any]] = getattr(density, "ranking_", [])
    failed: dict[str, str] = {row["name"]: row["failed"] for row in ranking if row.get("failed")}
    failed |= getattr(density, "failed_", {})
    working = [row for row in ranking if not row.get("failed")]
    if working:
        yield _choice(working)
    if failed:
        fitted = len(working) or len(getattr(density, "estimators_", {}))
        yield _failed(failed, len(failed) + fitted)


def _choice(working: Sequence[Mapping[str, Any]]) -> Finding:
    chosen, *others = working
    numbers = _numbers(chosen)
    text = f"The density is {chosen['name']!r}, first of {len(working)} candidates{_marks(chosen)}"
    if others:
        text += f"; the runner-up is {others[0]['name']!r}{_marks(others[0])}"
        numbers |= {f"runner-up {name}": value for name, value in _numbers(others[0]).items()}
    return Finding("density_chosen", "ok", f"{text}.", numbers)


def _marks(row: Mapping[str, Any]) -> str:
    """The two criteria of the choice, as far as they are known."""
    names = {"errors": "errors of the classifier", "pseudo_outliers": "pseudo-outliers"}
    numbers = _numbers(row)
    said = [f"{names[key]} {float(numbers[key]):.3f}" for key in names if key in numbers]
    return f" (AUROC: {', '.join(said)})" if said else ""


def _failed(failed: Mapping[str, str], of: int) -> Finding:
    reasons = "; ".join(f"{name!r}: {why.rstrip('.')}" for name, why in failed.items())
    most = 2 * len(failed) > of
    return Finding(
        "candidates_failed",
        "warning" if most else "note",
        f"{len(failed)} of {of} candidate densities could not be fitted. {reasons}.",
        {"failed": len(failed), "candidates": of},
        "Most often features are constant, copied or too many for the rows: see the reasons.",
    )


def _numbers(row: Mapping[str, Any]) -> dict[str, Number]:
    return {
        name: float(value)
        for name, value in row.items()
        if isinstance(value, int | float) and np.isfinite(value)
    }
