"""TOML of suites and captions, read into frozen typed models, and errors that say where."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from ..names import refuse_unknown

Model = TypeVar("Model", bound=BaseModel)


class Frozen(BaseModel):
    """A model that refuses unknown keys, with the one that was probably meant."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _check_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            refuse_unknown("key", data, cls.model_fields)
        return data


def read_tables(text: str, where: str) -> dict[str, Any]:
    """Return the tables of a TOML file, arrays as tuples; `where` names the file in errors."""
    try:
        tables: dict[str, Any] = _to_tuples(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: not TOML: {error}") from error
    return tables


def read_model(model: type[Model], table: Mapping[str, Any], where: str, whole: str = "") -> Model:
    """Return the model of a table; `where` names file and key in errors, `whole` the table."""
    try:
        return model.model_validate(_to_tuples(table))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or whole
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        message = "this key is missing"
    elif "unknown" not in message:
        message += f", got {first['input']!r}"
    raise ValueError(f"{where}: {place}: {message}")


def _to_tuples(value: Any) -> Any:
    """Arrays of TOML as tuples: nothing in a suite changes after it was read."""
    if isinstance(value, Mapping):
        return {key: _to_tuples(item) for key, item in value.items()}
    return tuple(map(_to_tuples, value)) if isinstance(value, list | tuple) else value
