"""Bodies of requests, checked field by field; and what the answers look like, for OpenAPI."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, WithJsonSchema
from pydantic.dataclasses import dataclass

__all__ = ["Pictures"]

FieldName = Literal["label", "probabilities", "vacuity", "p_value", "flagged", "set", "reason"]
#: Rows are checked where they are read, so that each is refused alone; and an error of each cell
#: would take more memory than the body.
_CELL = {"type": ["number", "string", "boolean", "null"]}
_Named = Annotated[Any, WithJsonSchema({"type": "object", "additionalProperties": _CELL})]
_Listed = Annotated[Any, WithJsonSchema({"type": "array", "items": _CELL})]
_NAMED: dict[str, Any] = {
    "rows": [{"deck": 1, "sex": "female", "age": 31.5, "fare": 47.1}],
    "fields": ["label", "probabilities", "vacuity", "p_value", "flagged", "set", "reason"],
}
_MATRIX: dict[str, Any] = {
    "columns": ["deck", "sex", "age", "fare"],
    "matrix": [[1, "female", 31.5, 47.1], [3, "male", None, 8.05]],
}
_CARD: dict[str, Any] = {"rows": _NAMED["rows"], "top": 3}
#: What each field of a request may be.
EXAMPLES = _MATRIX | _NAMED | _CARD | {"model": "passengers", "coverage": 0.9, "by_class": True}


class Rows(BaseModel):
    """Rows by the names of their columns, or as a matrix; null is a gap."""

    model_config = ConfigDict(strict=True, extra="forbid")
    model: str | None = Field(None, description="Name of the model, if several are served.")
    rows: list[_Named] | None = Field(None, description="One object per row.")
    matrix: list[_Listed] | None = Field(None, description="One list per row.")
    columns: list[str] | None = Field(
        None,
        fail_fast=True,
        description="The columns of the matrix; default: those of the model, in its order.",
    )


class PredictRequest(Rows):
    """Rows to answer, and the fields of an answer."""

    model_config = ConfigDict(json_schema_extra={"examples": [_NAMED, _MATRIX]})
    fields: list[FieldName] = Field(
        ["label", "probabilities", "vacuity", "p_value", "flagged"], min_length=1, fail_fast=True
    )
    coverage: float = Field(0.9, gt=0, lt=1, description="Of the prediction sets.")
    by_class: bool = Field(False, description="Hold the coverage within each class.")


class ExplainRequest(Rows):
    """Rows to explain."""

    model_config = ConfigDict(json_schema_extra={"examples": [_CARD]})
    top: int = Field(5, ge=1, le=100, description="Columns named per density.")


class RefusedRow(BaseModel):
    """A row without an answer."""

    row: int = Field(description="Its number in the request, from 1.")
    column: str = Field(description='"" for the whole row.')
    reason: str


class Answer(BaseModel):
    """Answer of a model to one row; only the fields that the request names are there."""

    row: int = Field(description="Its number in the request, from 1.")
    label: str | None = None
    probabilities: dict[str, float] | None = None
    vacuity: float | None = Field(
        None, description="Share of the prior, in (0, 1]; 1: it knows nothing."
    )
    p_value: float | None = Field(
        None, description="How rare such a row is among those like the fit's."
    )
    flagged: bool | None = Field(None, description="Unlike the rows that were learned from.")
    set: list[str] | None = Field(None, description="The classes that it may be.")
    reason: str | None = Field(None, description='Why it is flagged; "" if it is not.')


class PredictResponse(BaseModel):
    """Answers in the order of the rows, without those refused."""

    model: str
    version: str = Field(description="First digits of the SHA-256 of the model's file.")
    answers: list[Answer]
    refused: list[RefusedRow]


class ExplainResponse(BaseModel):
    """Cards as `Card.to_dict` gives them, with the number of the row."""

    model: str
    version: str
    cards: list[dict[str, Any]]
    refused: list[RefusedRow]


class ModelColumn(BaseModel):
    """A column of a model, with what was usual in it."""

    name: str
    kind: str
    levels: list[str]
    lowest: float | None
    highest: float | None
    usual: float | str | None = Field(description="A value as the fit saw many.")


class ModelFacts(BaseModel):
    """A model that is served."""

    name: str
    version: str
    loaded_at: str
    problem: str | None = Field(description="Why the last reload failed; null if it did not.")
    target: str | None
    classes: list[str]
    false_alarm_rate: float
    prior: float = Field(
        description="Sum of the prior: divided by the vacuity, it is that of the Dirichlet."
    )
    pictures: bool = Field(description="Whether a row is an image; see /v1/models/NAME/pictures.")
    columns: list[ModelColumn]


class Drift(BaseModel):
    """Report of a model's monitor on the rows that were answered since it was loaded."""

    model: str
    version: str
    window_rows: int
    problem: str | None = Field(description="Why the model cannot be watched; null if it is.")
    report: dict[str, Any] | None = Field(
        description="As `DriftReport.to_dict` gives it; null before the first 50 rows."
    )
    windows: list[dict[str, Any]] = Field(description="The last 100, the newest last.")


class Error(BaseModel):
    """Error in place of an answer: the field of the request that is to blame, and the remedy."""

    status: int
    field: str
    reason: str
    request_id: str
    refused: list[RefusedRow] | None = None


Pixels = Annotated[
    np.ndarray,
    PlainSerializer(lambda images: base64.b64encode(images.tobytes()).decode(), return_type=str),
]


@dataclass(frozen=True, eq=False, config=ConfigDict(arbitrary_types_allowed=True))
class Pictures:
    """Images beside a model of pixels, which its file does not hold.

    In JSON they are their bytes in base64: one byte per pixel, 255 is ink.

    Attributes
    ----------
    height, width : int
        In pixels; a row of the model is such an image, row by row, with ink in [0, 1].
    images : ndarray of uint8, shape (n, height * width)
        The training images, in the order of the fit; 255 is ink.
    labels : list of str, length n
        Their classes.
    examples : dict of str to ndarray of uint8, shape (m, height * width)
        Images that the fit has not seen, by what they are.
    """

    height: int
    width: int
    images: Pixels
    labels: list[str]
    examples: dict[str, Pixels]
