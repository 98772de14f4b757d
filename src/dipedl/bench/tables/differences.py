"""Why a number of ours is not the paper's: sentences, by suite, profile, method and metric."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

__all__ = ["ANY", "explanation"]

#: Stands for every metric of a method that has no sentence of its own.
ANY = "*"


def explanation(suite: str, profile: str, method: str, metric: str) -> str | None:
    """The sentence that explains a difference, or None if there is none.

    The sentences are in ``differences.toml`` beside this file, one table a method,
    ``[suite.profile.method]``, with one line a metric, such as ``accuracy = "..."``, or ``"*"`` for
    all of its metrics that have no line of their own.

    Examples
    --------
    >>> from dipedl.bench.tables.differences import explanation
    >>> explanation("mnist", "cpu", "no such method", "accuracy") is None
    True
    """
    found = _sentences().get(suite, {}).get(profile, {}).get(method, {})
    sentence = found.get(metric, found.get(ANY))
    return None if sentence is None else str(sentence)


@cache
def _sentences() -> Mapping[str, Any]:
    text = files(__package__).joinpath("differences.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)
