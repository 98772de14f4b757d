"""A model of a table in its file: the classifier, and how the columns of its table are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from ...classifier import DIPClassifier
from ...io import UntrustedTypesError, describe, load
from .columns import ColumnSpec, as_inputs, from_plain, texts_of, to_plain
from .errors import UserError, list_names
from .images import describe_features
from .kinds import CATEGORY, DATE_FORMATS, GAP_WORDS, KINDS, NUMERIC
from .reading import RejectedRow

#: Attributes of the classifier that hold what `TableModel` needs beside it: as JSON, and an array.
_KEPT = "table_"
_ROWS = "table_rows_"
_MAKE = "make one with: dipedl fit"


_COLUMN_FORMS = {
    "str": str, "bool": bool, "float": float, "tuple[str, ...]": [str], "tuple[float, ...]": [float]
}  # fmt: skip
#: What the JSON beside a classifier holds, as `check_plain` reads it.
_TABLE = {
    "target": str,
    "columns": [{field.name: _COLUMN_FORMS[str(field.type)] for field in fields(ColumnSpec)}],
    "facts": {
        **dict.fromkeys(("file", "format", "model", "model_title", "images_sha256"), str),
        **dict.fromkeys(("rows", "learned", "seed"), int),
        **dict.fromkeys(("time_column", "images"), (str, None)),
        "dropped": [str],
        "gaps": [str],
        "classes": {str: int},
        "held_out": dict.fromkeys(
            ("held_out_rows", "accuracy", "brier", "ece", "classifier_ece"), float
        ),
    },
}
#: What `inspect_model` reads of a manifest.
_MANIFEST = {
    "type": str,
    "format_version": int,
    "versions": {str: (str, None)},
    "classes": (list, None),
    "n": (float, None),
    "root": {"$object": int},
    "objects": [{"type": str, "state": {}}],
    "tensors": {},
}


#: The largest number that a table has: floats hold it.
_LARGEST = 2**63


@dataclass(frozen=True)
class TableModel:
    """A fitted classifier with the columns of its table.

    `facts` are what the fit was asked and found, as plain values; `rows` the numbers in its file of
    the rows that it learned from, in their order, shape (n,). Without a table, of `plain_model`,
    `target`, `facts` and `rows` are empty.
    """

    classifier: DIPClassifier
    columns: tuple[ColumnSpec, ...]
    target: str
    facts: dict[str, Any]
    rows: np.ndarray

    @property
    def classes(self) -> list[str]:
        """The classes, in the order of all probabilities."""
        return [str(name) for name in self.classifier.classes_]

    @property
    def named(self) -> bool:
        """Return whether the classifier gets a table, not an array."""
        return hasattr(self.classifier, "feature_names_in_")

    @property
    def of_images(self) -> bool:
        """Return whether its table is a folder of images."""
        return self.facts.get("images") is not None

    @property
    def gaps(self) -> tuple[str, ...]:
        """Words for a gap that the fit was told of."""
        return tuple(self.facts.get("gaps", ()))

    def labels(self, frame: pd.DataFrame) -> pd.Series | None:
        """Classes in a column of the target as texts, None for a gap; None without the column.

        A word such as NA is a gap unless it is a class of the model.
        """
        if self.target not in frame:
            return None
        labels = texts_of(frame[self.target], self.classes)
        return labels.mask(labels.isin(set(GAP_WORDS) - set(self.classes)), None)

    def inputs(
        self, frame: pd.DataFrame, rows: np.ndarray
    ) -> tuple[Any, np.ndarray, list[RejectedRow]]:
        """Return inputs of the classifier from rows of these numbers; the rest as `as_inputs`."""
        X, fine, refused = as_inputs(self.columns, frame, rows)
        return X if self.named else X.to_numpy(), fine, refused


def save_model(model: TableModel, path: Path) -> None:
    """Write the model: the ordinary file of a DIPClassifier."""
    kept = {"target": model.target, "columns": to_plain(model.columns), "facts": model.facts}
    setattr(model.classifier, _KEPT, json.dumps(kept))
    setattr(model.classifier, _ROWS, model.rows)
    try:
        model.classifier.save(path)
    except OSError as error:
        raise UserError(f"{error.strerror}. Free space, or choose another place") from error


def read_model(path: Path) -> TableModel:
    """The model in a file; UserError if it is none of a table."""
    return table_model(load_any(path), path)


def load_any(path: Path) -> Any:
    """Whatever model is in a file; UserError if there is none that can be trusted."""
    _check_file(path)
    try:
        return load(path)
    except UntrustedTypesError as error:
        raise UserError(
            f"{path} holds types that are not trusted: {', '.join(error.types)}; load it in Python "
            "if you know where it comes from: dipedl.load(path, trusted=[...])"
        ) from error
    except ValueError as error:
        raise UserError(str(error)) from error


def is_of_table(model: Any) -> bool:
    """Return whether a model was made of a table by ``dipedl fit``."""
    return hasattr(model, _KEPT)


def table_model(classifier: Any, path: Path) -> TableModel:
    """A model out of `load_any` with its columns; UserError if it is none of a table."""
    kept, rows = _kept(getattr(classifier, _KEPT, None), path), getattr(classifier, _ROWS, None)
    if not (isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iu"):
        raise UserError(f"{path} holds no numbers of its training rows: fit it again")
    columns = tuple(from_plain(kept["columns"]))
    return TableModel(classifier, columns, kept["target"], kept["facts"], rows)


def plain_model(
    classifier: DIPClassifier, unnamed: str = "x", texts: Sequence[str] = ()
) -> TableModel:
    """A model that was fitted in Python on numbers and `texts`; without names on x0, x1, ..."""
    numbers = [f"{unnamed}{j}" for j in range(classifier.n_features_in_)]
    names = getattr(classifier, "feature_names_in_", numbers)
    columns = (ColumnSpec(str(name), CATEGORY if name in texts else NUMERIC) for name in names)
    return TableModel(classifier, tuple(columns), "", {}, np.empty(0, dtype=int))


def inspect_model(path: Path) -> dict[str, Any]:
    """Return the description in a file: nothing in it is built or executed."""
    _check_file(path)
    try:
        manifest = describe(path)
    except ValueError as error:
        raise UserError(str(error)) from error
    try:
        check_plain(manifest, _MANIFEST, "the manifest")
        state = manifest["objects"][manifest["root"]["$object"]]["state"]
    except (ValueError, LookupError) as error:
        raise UserError(f"{path} holds no valid model: {error}; copy it again") from error
    found = {name: manifest.get(name) for name in ("type", "versions", "classes", "n")}
    found |= {"format": manifest["format_version"], "untrusted_types": manifest["untrusted_types"]}
    found |= {"megabytes": path.stat().st_size / 1e6, "arrays": len(manifest["tensors"])}
    return found | {"table": _kept(state[_KEPT], path) if _KEPT in state else None}


def describe_rows_learned(facts: Mapping[str, Any]) -> str:
    """From how many rows a model learned, and its classifier if these are fewer, in words."""
    learned, of_classifier = facts["learned"], facts.get("classifier_rows", facts["learned"])
    if of_classifier >= learned:
        return f"{learned:,} rows"
    return f"{learned:,} rows, the classifier from {of_classifier:,} of them"


def describe_inputs(kinds: Mapping[str, str], facts: Mapping[str, Any]) -> dict[str, str]:
    """The columns of a model with their kinds; of images all features in one line."""
    network = facts.get("images")
    return dict(kinds) if network is None else {"image": describe_features(network, len(kinds))}


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a model; {_MAKE}")
    if not path.exists():
        raise UserError(f"there is no model {path}; {_MAKE}")


def _kept(text: Any, path: Path) -> dict[str, Any]:
    if not isinstance(text, str):
        raise UserError(
            f"{path} holds a model that was not made of a table by this command: its columns are "
            f"not known. Use it in Python, or {_MAKE}"
        )
    try:
        kept: dict[str, Any] = json.loads(text)
        check_plain(kept, _TABLE, "the table")
        columns = list(from_plain(kept["columns"]))
    except (ValueError, TypeError, RecursionError) as error:
        raise UserError(
            f"{path} holds a table that no fit has written ({error}): copy it again, or {_MAKE}"
        ) from error
    wrong = [c.name for c in columns if c.kind not in KINDS or c.decimal not in (".", ",")]
    wrong += [c.name for c in columns if c.date not in ("", "ISO8601", *DATE_FORMATS)]
    wrong += [c.name for c in columns if c.shares and len(c.shares) != len(c.levels or c.cuts)]
    if wrong or len({c.name for c in columns}) < len(columns):
        raise UserError(
            f"{path} has columns that no fit has made: {list_names(wrong or ['one twice'])}"
        )
    return kept


def check_plain(value: Any, form: Any, name: str) -> None:
    """Raise ValueError, with the name of a part, unless a value out of JSON has a form.

    A form is a type, None, a list of the form of all entries, a dict of those of its keys (of all,
    by ``str``), or a tuple of forms, of which one must fit.
    """
    if isinstance(form, tuple):
        for one in form:
            with suppress(ValueError):
                return check_plain(value, one, name)
        raise ValueError(f"{name} is {type(value).__name__}")
    if form is float and type(value) is int:
        form = int
    kind = type(form) if isinstance(form, list | dict) else type(None) if form is None else form
    # Whole numbers of JSON have no bound, and numbers may be NaN.
    large = type(value) in (int, float) and not abs(value) <= _LARGEST
    if type(value) is not kind or large:
        raise ValueError(f"{name} is {'too large' if large else type(value).__name__}")
    if isinstance(form, list) and isinstance(value, list):
        for i, entry in enumerate(value):
            check_plain(entry, form[0], f"{name}[{i}]")
    elif isinstance(form, dict) and isinstance(value, dict):
        parts = dict.fromkeys(value, form[str]) if str in form else form
        for key, of in parts.items():
            if key not in value:
                raise ValueError(f"{name} has no {key!r}")
            check_plain(value[key], of, f"{name}.{key}")
