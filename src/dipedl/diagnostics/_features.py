"""What the density sees, where that is not the inputs as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..calibration.held_out import HeldOut
from ..fitting.encoding import PARTS
from ._finding import Finding


def feature_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """The default features of a pipeline or of a table with text or gaps."""
    features = getattr(clf.evidence_, "features_", None)
    if clf.evidence_.features is not None or not isinstance(features, Pipeline):
        return
    prepare, dense = features.steps[0][1], features.named_steps.get("reduce")
    p = int(features[-1].n_features_in_)
    made = _of_table(prepare) if isinstance(prepare, ColumnTransformer) else _of_steps(prepare)
    reduced = "" if dense is None else f", of their {dense.n_features_in_} features {p} components"
    left_out = _left_out(prepare)
    yield Finding(
        "density_features",
        "note" if left_out else "ok",
        f"The density sees {p} standardised features: {made}{reduced}."
        + (
            f" It does not see {_listed(left_out)}: hardly a value comes twice." if left_out else ""
        ),
        {"features": p, "left_out": len(left_out)},
        "Drop these columns, or make something of them that comes again." if left_out else "",
    )


def _of_table(encoder: ColumnTransformer) -> str:
    chosen = {name: columns for name, _, columns in encoder.transformers_}
    return "; ".join(f"{said} ({_listed(chosen[n])})" for n, said in PARTS.items() if n in chosen)


def _of_steps(steps: Any) -> str:
    inner = steps.estimator if isinstance(steps, FrozenEstimator) else steps
    names = ", ".join(type(step).__name__ for _, step in inner.steps)
    return f"what the classifier's own steps make of X ({names})"


def _left_out(encoder: Any) -> list[Any]:
    if not isinstance(encoder, ColumnTransformer):
        return []
    return [column for name, _, of in encoder.transformers_ if name == "remainder" for column in of]


def _listed(columns: list[Any]) -> str:
    return ", ".join(map(str, columns))
