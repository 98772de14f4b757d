"""TOML of suites and studies, read into frozen typed models, and errors that say where."""

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
    def _known_keys(cls, data: Any) -> Any:
        if isinstance(data, Mapping):
            refuse_unknown("key", data, cls.model_fields)
        return data


def read_tables(text: str, where: str) -> dict[str, Any]:
    """Tables of a TOML file, arrays as tuples; `where` names the file in errors."""
    try:
        tables: dict[str, Any] = _tuples(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{where}: not TOML: {error}") from error
    return tables


def validated(model: type[Model], table: Mapping[str, Any], where: str, whole: str = "") -> Model:
    """The model of a table; `where` names file and key in errors, `whole` the table itself."""
    try:
        return model.model_validate(_tuples(table))
    except ValidationError as error:
        raise ValueError(f"{where}: {_first(error, whole)}") from None


def _first(error: ValidationError, whole: str) -> str:
    """Where and what the first error is: a key path, and the message without pydantic's frame."""
    first = error.errors(include_url=False)[0]
    place = ".".join(str(step) for step in first["loc"]) or whole
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        return f"{place}: this key is missing"
    return f"{place}: {message}" + ("" if "unknown" in message else f", got {first['input']!r}")


def _tuples(value: Any) -> Any:
    """Arrays of TOML as tuples: nothing in a suite changes after it was read."""
    if isinstance(value, Mapping):
        return {key: _tuples(item) for key, item in value.items()}
    return tuple(_tuples(item) for item in value) if isinstance(value, list | tuple) else value
