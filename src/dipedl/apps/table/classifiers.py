"""Classifiers by their name on the command line, each taking a table as it comes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.compose import ColumnTransformer, make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ...features.encoding import FAR, scaled_gaps_far
from ...plugins import optional
from .errors import UsageError, UserError, list_names

#: A level of fewer rows shares a column with the other rare ones.
_RARE = 10
#: A principal component of pixels for so many images, and so many at most.
_ROWS_PER_COMPONENT, _MOST_COMPONENTS = 10, 64


#: Name on the command line -> what it is, and how it is made of a seed.
MODELS: dict[str, tuple[str, Callable[[int], Any]]] = {
    "boosting": (
        "histogram gradient boosting",
        lambda seed: HistGradientBoostingClassifier(random_state=seed),
    ),
    "forest": (
        "random forest of 200 trees",
        lambda seed: RandomForestClassifier(200, n_jobs=-1, random_state=seed),
    ),
    "linear": ("logistic regression", lambda seed: LogisticRegression(max_iter=1000)),
    "mlp": (
        "network of one layer of 64 units",
        lambda seed: MLPClassifier((64,), max_iter=300, early_stopping=True, random_state=seed),
    ),
}


def check_model(name: str) -> None:
    """Refuse a name that is none of `MODELS` and no file of skops."""
    if name not in MODELS and not name.endswith(".skops"):
        raise UsageError(
            f"`model` must be one of {list_names(MODELS)} or a .skops file, got {name!r}"
        )
    if name not in MODELS and not Path(name).is_file():
        raise UserError(f"{name}: there is no such file; write it by skops.io.dump")


def classifier(name: str, X: pd.DataFrame, seed: int, pixels: bool = False) -> Any:
    """An unfitted classifier for inputs X (n, d): one of `MODELS`, or a copy of one in a file.

    Of pixels it learns from principal components, as many as `components` says.
    """
    bare = MODELS[name][1](seed) if name in MODELS else _out_of_file(Path(name))
    if pixels:
        return make_pipeline(PCA(components(X), random_state=seed), StandardScaler(), bare)
    if name not in MODELS:
        return bare
    if name != "boosting":
        return make_pipeline(_encoder(X), bare)
    # It takes gaps and levels, and the density encodes a table that has some.
    return bare if X.isna().any(axis=None) or _levels(X) else make_pipeline(_gaps_far(X), bare)


def components(X: pd.DataFrame) -> int:
    """Principal components that n images of d pixels, X (n, d), are reduced to."""
    return int(max(1, min(len(X) // _ROWS_PER_COMPONENT, X.shape[1], _MOST_COMPONENTS)))


def _encoder(X: pd.DataFrame) -> ColumnTransformer:
    """For a classifier of numbers alone: gaps filled and marked, numbers scaled, levels 0/1.

    A gap in a column of numbers that has none in X is put far out: nothing is known of it.
    """
    levels = _levels(X)
    numbers = X.columns.drop(levels)
    gaps = [c for c in numbers if X[c].isna().any()]
    filled = SimpleImputer(strategy="median", add_indicator=True)
    known = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=_RARE, sparse_output=False
    )
    parts = [
        (scaled_gaps_far(), list(numbers.drop(gaps))),
        (make_pipeline(filled, StandardScaler()), gaps),
        (known, levels),
    ]
    return make_column_transformer(*(part for part in parts if part[1]))


def _gaps_far(X: pd.DataFrame) -> SimpleImputer:
    """Puts a gap 10 standard deviations out at least, and leaves numbers X (n, d) as they are."""
    out = X.mean() + FAR * X.std(ddof=0)
    return SimpleImputer(strategy="constant", fill_value=float(out.max()))


def _levels(X: pd.DataFrame) -> list[str]:
    return [c for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)]


def title(name: str) -> str:
    """The model in words, for the output."""
    return MODELS[name][0] if name in MODELS else f"the estimator in {name}, fitted again"


def _out_of_file(path: Path) -> Any:
    skops = optional("skops.io", "a model out of a file")
    try:
        unknown = skops.get_untrusted_types(file=path)
    except Exception as error:  # whatever it makes of foreign bytes
        raise UserError(f"{path} is no file of skops.io.dump: {error}") from error
    if unknown:
        raise UserError(
            f"{path} holds {list_names(unknown)}, by which a crafted file could run code: "
            "save it unfitted, skops.io.dump(sklearn.clone(model), path), or fit it in Python"
        )
    found = skops.load(path)
    if not isinstance(found, BaseEstimator) or not is_classifier(found):
        raise UserError(f"{path} holds {type(found).__name__}, not a classifier")
    return clone(found)
