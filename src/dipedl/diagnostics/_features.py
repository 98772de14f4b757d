"""What the density sees, where that is not the inputs as they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sklearn.compose import ColumnTransformer
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import Pipeline

from ..calibration.held_out import HeldOut
from ..features.encoding import PARTS
from ..features.pipelines import names_after
from ..writing.finding import Finding


def feature_findings(held: HeldOut, clf: Any) -> Iterator[Finding]:
    """The default features of a pipeline or of a table with text or gaps."""
    features = getattr(clf.evidence_, "features_", None)
    if clf.evidence_.features is not None or not isinstance(features, Pipeline):
        return
    parts = features.named_steps
    prepare, dense, encoder = (parts.get(name) for name in ("prepare", "reduce", "encode"))
    p = int(features[-1].n_features_in_)
    made = [] if prepare is None else [_of_steps(prepare)]
    made += [] if encoder is None else [_of_table(encoder, names_after(prepare, None))]
    reduced = "" if dense is None else f", of {dense.n_features_in_} features {p} components"
    left_out = _left_out(encoder)
    yield Finding(
        "density_features",
        "note" if left_out else "ok",
        f"The density sees {p} standardised features: "
        f"{'; of it '.join(made) or 'the columns of X'}{reduced}."
        + (
            f" It does not see {_listed(left_out)}: hardly a value comes twice." if left_out else ""
        ),
        {"features": p, "left_out": len(left_out)},
        "Drop these columns, or make something of them that comes again." if left_out else "",
    )


def _of_table(encoder: ColumnTransformer, names: list[str] | None) -> str:
    """What the encoder does with which columns; `names` are those of an array."""
    chosen = {
        part: [c if names is None or isinstance(c, str) else names[c] for c in columns]
        for part, _, columns in encoder.transformers_
    }
    return "; ".join(f"{said} ({_listed(chosen[n])})" for n, said in PARTS.items() if n in chosen)


def _of_steps(steps: Any) -> str:
    inner = steps.estimator if isinstance(steps, FrozenEstimator) else steps
    names = ", ".join(type(step).__name__ for _, step in inner.steps)
    return f"what the classifier's own steps make of X ({names})"


def _left_out(encoder: ColumnTransformer | None) -> list[Any]:
    if encoder is None:
        return []
    return [column for name, _, of in encoder.transformers_ if name == "remainder" for column in of]


def _listed(columns: list[Any]) -> str:
    return ", ".join(map(str, columns))
