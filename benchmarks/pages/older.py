"""Which published rows have settings that the suite of today no longer has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dipedl.bench.results.settled import changes
from dipedl.bench.spec.plan import plan
from dipedl.bench.spec.suite import load_suite
from dipedl.bench.tables.table import latest

from .source import Source

__all__ = ["older_settings"]

#: Most methods that a sentence names.
_NAMED = 3


def older_settings(source: Source) -> Iterator[str]:
    """A sentence for each setting that has changed since, with the rows it holds for."""
    found: dict[str, list[str]] = {}
    for profile, rows in source.rows.items():
        titles = {row["method"]: row["title"] for row in latest(rows)}
        methods: dict[str, dict[str, str]] = {}
        for row in latest(rows):
            for change in _changes(source.suite, row):
                methods.setdefault(change, {})[row["method"]] = titles[row["method"]]
        for change, of_change in methods.items():
            found.setdefault(change, []).append(f"`{profile}` ({_whom(of_change, len(titles))})")
    for change, where in found.items():
        yield f"{change}: {', '.join(where)}."


def _whom(titles: Mapping[str, str], n: int) -> str:
    if len(titles) > _NAMED:
        return "all methods" if len(titles) == n else f"{len(titles)} of {n} methods"
    return ", ".join(titles.values())


def _changes(name: str, row: Mapping[str, Any]) -> list[str]:
    """What differs; nothing of rows without a whole configuration, or of a crossed suite."""
    config, suite = row["config"], load_suite(name)
    if "format" not in config or suite.crossed or row["method"] not in suite.methods:
        return []
    ood = config["data"]["ood"]
    (part,) = plan(suite, row["profile"], [row["method"]], f"{name}.toml", ood)
    return changes(config, part.config)
