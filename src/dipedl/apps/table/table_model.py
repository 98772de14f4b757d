"""A model of a table in its file: the classifier, and how the columns of its table are read."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from itertools import repeat
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from ...classifier import DIPClassifier
from ...columns import Column
from ...io import UntrustedTypesError, describe, load
from .columns import (
    CATEGORY,
    DATE_FORMATS,
    GAP_WORDS,
    KINDS,
    NUMERIC,
    ColumnSpec,
    as_inputs,
    check_known,
    texts_of,
)
from .errors import UserError, list_names
from .images import describe_features
from .reading import RejectedRow, mark_words

_MAKE = "make one with: dipedl fit"


_Count = Annotated[int, Field(ge=0, le=2**63)]
_Number = Annotated[float, Field(ge=-(2.0**63), le=2.0**63)]


class _Form(BaseModel):
    """A form of values out of JSON, to which others may be added."""

    model_config = ConfigDict(extra="allow", strict=True)


class _HeldOut(_Form):
    """Numbers of held-out rows."""

    held_out_rows: _Number
    accuracy: _Number
    brier: _Number
    ece: _Number
    classifier_ece: _Number


class _Facts(_Form):
    """Settings and results of a fit."""

    file: str
    format: str
    model: str
    model_title: str
    images_sha256: str
    rows: _Count
    learned: _Count
    seed: int
    time_column: str | None
    group_column: str | None = None
    images: str | None
    dropped: list[str]
    gaps: list[str]
    classes: dict[str, _Count]
    held_out: _HeldOut


@dataclass(frozen=True)
class TableSpec:
    """The table of a model: its target, the other columns, settings and results of the fit."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    target: str
    columns: tuple[ColumnSpec, ...]
    facts: dict[str, Any]


class _Reference(_Form):
    """A part of a model by its place in the manifest."""

    index: Annotated[int, Field(alias="$object")]


class _Manifest(_Form):
    """The description in a file, as far as it is printed."""

    type: str
    format_version: int
    versions: dict[str, str | None]
    classes: list[Any] | None
    n: float | None
    root: _Reference | None = None
    objects: list[dict[str, Any]]
    tensors: dict[str, Any]


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
        """Return the classes, in the order of all probabilities."""
        return [str(name) for name in self.classifier.classes_]

    @cached_property
    def usual(self) -> dict[str, Column]:
        """Return the inputs of the classifier by their names, with their usual values."""
        columns = self.classifier.evidence_.columns_
        return {} if columns is None else {name: columns[j] for j, name in enumerate(columns.names)}

    @property
    def named(self) -> bool:
        """Return whether the classifier gets a table, not an array."""
        return hasattr(self.classifier, "feature_names_in_")

    @property
    def of_images(self) -> bool:
        """Return whether its table is a folder of images."""
        return self.facts.get("images") is not None

    @property
    def of_pixels(self) -> bool:
        """Return whether its columns are the grey pixels of square images."""
        return self.facts.get("images") == ""

    @property
    def gaps(self) -> tuple[str, ...]:
        """Return the words for a gap that were given to the fit."""
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
        X, fine, refused = as_inputs(self.columns, mark_words(frame, self.gaps), rows)
        return X if self.named else X.to_numpy(), fine, refused


def save_model(model: TableModel, path: Path) -> None:
    """Write the model: the ordinary file of a DIPClassifier."""
    attach_table(model)
    try:
        model.classifier.save(path)
    except OSError as error:
        raise UserError(f"{error.strerror}. Free space, or choose another place") from error


def attach_table(model: TableModel) -> None:
    """Give the classifier its table: it then takes rows of that table, as they come."""
    spec = TableSpec(model.target, model.columns, model.facts)
    model.classifier.table_ = json.dumps(asdict(spec))
    model.classifier.table_rows_ = model.rows
    model.classifier.encode_rows_ = encode_rows


def encode_rows(classifier: Any, X: Any) -> Any:
    """Return rows of the table that a classifier was fitted on as its inputs; inputs as they are.

    The columns of an array are those of the table that the model sees, in their order.

    Raises
    ------
    UserError
        If a column is missing, or an entry cannot be read; names row and column.
    """
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    spec = _parse_spec(classifier.table_, "the model")
    columns = spec.columns
    names = list(classifier.feature_names_in_)
    if isinstance(X, np.ndarray | list) and np.ndim(X) == 2:
        own = [column.name for column in columns if column.used]
        # Of a list NumPy makes texts, with the text nan for a gap.
        X = np.asarray(X, dtype=object) if isinstance(X, list) else X
        if X.shape[1] != len(own):
            raise UserError(
                f"X has {X.shape[1]:,} columns, and the model was fitted on the {len(own):,} "
                f"columns {list_names(map(repr, own))}: give these, in this order or by name"
            )
        levels = [column.levels for column in columns if column.used]
        texts = X.dtype.kind == "U"
        X = pd.DataFrame(X, columns=own, dtype=object if texts else None)
        if texts:
            X = X.mask((X == "nan") & ["nan" not in known for known in levels], None)
    if isinstance(X, pd.Series | Mapping) or (isinstance(X, list) and np.ndim(X) == 1):
        raise UserError(
            f"X must be a table, got {type(X).__name__}: give a DataFrame, such as "
            "pd.DataFrame([row]) of one row"
        )
    if not isinstance(X, pd.DataFrame):
        return X
    twice = X.columns[X.columns.duplicated()].map(str)
    for name in (column.name for column in columns if column.used and column.name in twice):
        raise UserError(f"X has more than one column {name!r}: drop or rename the others")
    gaps = spec.facts.get("gaps", ())
    if list(X.columns) == names and all(map(_is_input, repeat(columns), map(X.get, names))):
        # Of these only numbers stand as in the table: a 0 may be the no of a yes or no.
        numbers = [column.name for column in columns if column.used and column.kind == NUMERIC]
        if gaps:
            X = X.copy(deep=False)
            X[numbers] = mark_words(X[numbers], gaps)
        return X
    check_known(columns, map(str, X.columns), "the table")
    made, _, rejected = as_inputs(columns, mark_words(X, gaps), np.arange(len(X)))
    for row in rejected[:1]:
        raise UserError(str(row))
    return made


def _is_input(columns: Iterable[ColumnSpec], values: pd.Series) -> bool:
    """Return whether a column is one of the inputs of a model already."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        levels = next((c.levels for c in columns if c.name == values.name), ())
        return tuple(values.cat.categories[: len(levels)]) == levels
    return bool(values.dtype == np.float64)


def read_model(path: Path) -> TableModel:
    """Return the model in a file; UserError if it is none of a table."""
    return table_model(load_any(path), path)


def load_any(path: Path) -> Any:
    """Return the model in a file; UserError if there is none that can be trusted."""
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
    return hasattr(model, "table_")


def table_model(classifier: Any, path: Path) -> TableModel:
    """Return a model of `load_any` with its columns; UserError if it is none of a table."""
    if type(classifier).__name__ == "DriftMonitor":
        raise UserError(
            f"{path} holds a monitor, not a model: name the model that it watches; a monitor is "
            "the `state` of dipedl monitor"
        )
    spec = _parse_spec(getattr(classifier, "table_", None), path)
    rows = getattr(classifier, "table_rows_", None)
    if not (isinstance(rows, np.ndarray) and rows.ndim == 1 and rows.dtype.kind in "iu"):
        raise UserError(f"{path} holds no numbers of its training rows: fit it again")
    return TableModel(classifier, spec.columns, spec.target, spec.facts, rows)


def plain_model(classifier: DIPClassifier, unnamed: str = "x") -> TableModel:
    """Return a model fitted in Python, on numbers and texts; without names on x0, x1, ..."""
    inputs = classifier.evidence_.columns_
    texts = [] if inputs is None else inputs.text_columns()
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
        _Manifest.model_validate(manifest)
        # A DIPModule is tensors around a network, and has no root.
        module = manifest["type"] == "DIPModule"
        state = {} if module else manifest["objects"][manifest["root"]["$object"]]["state"]
        text = state.get("table_")
    except (ValueError, LookupError, AttributeError, TypeError) as error:
        reason = _first_error(error) if isinstance(error, ValueError) else str(error)
        raise UserError(f"{path} holds no valid model: {reason}; copy it again") from error
    found = {name: manifest.get(name) for name in ("type", "versions", "classes", "n")}
    found |= {"format": manifest["format_version"], "untrusted_types": manifest["untrusted_types"]}
    found |= {"megabytes": path.stat().st_size / 1e6, "arrays": len(manifest["tensors"])}
    return found | {"table": None if text is None else asdict(_parse_spec(text, path))}


def describe_rows_learned(facts: Mapping[str, Any]) -> str:
    """Say from how many rows a model learned, and its classifier if these are fewer."""
    learned, of_classifier = facts["learned"], facts.get("classifier_rows", facts["learned"])
    if of_classifier >= learned:
        return f"{learned:,} rows"
    return f"{learned:,} rows, the classifier from {of_classifier:,} of them"


def describe_inputs(kinds: Mapping[str, str], facts: Mapping[str, Any]) -> dict[str, str]:
    """Return the columns of a model with their kinds; of images all features in one line."""
    network = facts.get("images")
    return dict(kinds) if network is None else {"image": describe_features(network, len(kinds))}


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise UserError(f"{path} is a folder, not a model; {_MAKE}")
    if not path.exists():
        raise UserError(f"there is no model {path}; {_MAKE}")


@lru_cache(maxsize=16)
def _parse_spec(text: Any, path: Path | str) -> TableSpec:
    """Return the table in a text of JSON; UserError if no fit has written it."""
    if not isinstance(text, str):
        raise UserError(
            f"{path} holds a model that was not made of a table by this command: its columns are "
            f"not known. Use it in Python, or {_MAKE}"
        )
    try:
        spec = TypeAdapter(TableSpec).validate_json(text)
        _Facts.model_validate(spec.facts)
    except ValueError as error:
        why = _first_error(error)
        raise UserError(
            f"{path} holds a table that no fit has written ({why}): copy it again, or {_MAKE}"
        ) from error
    columns = spec.columns
    wrong = [c.name for c in columns if c.kind not in KINDS or c.decimal not in (".", ",")]
    wrong += [c.name for c in columns if c.date not in ("", "ISO8601", *DATE_FORMATS)]
    if wrong or len({c.name for c in columns}) < len(columns):
        names = list_names(wrong or ["one twice"])
        raise UserError(f"{path} has columns that no fit has made: {names}")
    return spec


def _first_error(error: ValueError) -> str:
    """Return the first error of pydantic in one line: the part, and what is wrong with it."""
    if not isinstance(error, ValidationError):
        return str(error)
    first = error.errors()[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}".removeprefix(": ")
