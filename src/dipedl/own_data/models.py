"""Classifiers by their name on the command line, each taking a table as it comes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import BaseEstimator, clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from .._plugins import optional
from .tables.mistake import Mistake, WrongOption, listed

#: A level of fewer rows shares a column with the other rare ones.
_RARE = 10


@dataclass(frozen=True)
class _Inputs:
    """Names of the inputs that are numbers and of those that are levels; and the seed."""

    numbers: Sequence[str]
    levels: Sequence[str]
    seed: int

    def encoded(self, estimator: Any) -> Pipeline:
        """The classifier behind an encoding: gaps filled and marked, numbers scaled, levels 0/1."""
        filled = SimpleImputer(strategy="median", add_indicator=True)
        levels = OneHotEncoder(
            handle_unknown="infrequent_if_exist", min_frequency=_RARE, sparse_output=False
        )
        encode = make_column_transformer(
            (make_pipeline(filled, StandardScaler()), list(self.numbers)),
            (levels, list(self.levels)),
        )
        return make_pipeline(encode, estimator)


def _boosting(inputs: _Inputs) -> Any:
    return HistGradientBoostingClassifier(random_state=inputs.seed)


def _forest(inputs: _Inputs) -> Any:
    return inputs.encoded(RandomForestClassifier(200, n_jobs=-1, random_state=inputs.seed))


def _linear(inputs: _Inputs) -> Any:
    return inputs.encoded(LogisticRegression(max_iter=1000))


def _mlp(inputs: _Inputs) -> Any:
    network = MLPClassifier((64,), max_iter=300, early_stopping=True, random_state=inputs.seed)
    return inputs.encoded(network)


#: Name on the command line -> what it is, and how it is made.
MODELS: dict[str, tuple[str, Callable[[_Inputs], Any]]] = {
    "boosting": ("histogram gradient boosting", _boosting),
    "forest": ("random forest of 200 trees", _forest),
    "linear": ("logistic regression", _linear),
    "mlp": ("network of one layer of 64 units", _mlp),
}


def check_model(name: str) -> None:
    """Refuse a name that is none of `MODELS` and no file of skops."""
    if name not in MODELS and not name.endswith(".skops"):
        raise WrongOption(f"--model must be one of {listed(MODELS)} or a .skops file, got {name!r}")
    if name not in MODELS and not Path(name).is_file():
        raise Mistake(f"--model {name}: there is no such file; write it by skops.io.dump")


def classifier(name: str, X: pd.DataFrame, seed: int) -> Any:
    """An unfitted classifier for inputs X (n, d): one of `MODELS`, or a copy of one in a file."""
    if name not in MODELS:
        return _out_of_file(Path(name))
    levels = [c for c in X if isinstance(X[c].dtype, pd.CategoricalDtype)]
    numbers = [c for c in X if c not in levels]
    return MODELS[name][1](_Inputs(numbers, levels, seed))


def title(name: str) -> str:
    """The model in words, for the output."""
    return MODELS[name][0] if name in MODELS else f"the estimator in {name}, fitted again"


def _out_of_file(path: Path) -> Any:
    skops = optional("skops.io", "--model with a file")
    unknown = skops.get_untrusted_types(file=path)
    if unknown:
        raise Mistake(
            f"--model {path} holds {listed(unknown)}, by which a crafted file could run code: "
            "save it unfitted, skops.io.dump(sklearn.clone(model), path), or fit it in Python"
        )
    found = skops.load(path)
    if not isinstance(found, BaseEstimator) or not hasattr(found, "predict_proba"):
        name = type(found).__name__
        raise Mistake(f"--model {path} holds {name}, not a classifier with predict_proba")
    return clone(found)
