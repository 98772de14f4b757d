"""The page of results of a suite in the documentation, computed from its published rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dipedl_bench.spec.captions import Section, captions_of
from dipedl_bench.tables.provenance import receipts

from .sections import KINDS
from .source import Source, largest_changes

__all__ = ["page_of"]


def page_of(suite: str, root: Path) -> str:
    """The page as Markdown; a profile without rows is said to be not yet run.

    Which sections a page has, its columns and its prose are the table ``page`` of the captions of
    the suite, see `dipedl_bench.spec.captions`. `root` is the folder of published results.
    """
    page = captions_of(suite).page
    if page is None:
        raise ValueError(f"the captions of {suite!r} must have a table [page] for a page, got none")
    source = Source(suite, root, page.profiles)
    text = page.text.strip().format(**largest_changes(suite))
    blocks = [f"# {page.title}", text, _commands(source), *_not_run(source)]
    for section in page.sections:
        blocks += _section(source, section)
    return "\n\n".join([*blocks, *_receipts(source)]) + "\n"


def _commands(source: Source) -> str:
    """How the page was made, and how to print all tables."""
    out = "--out results/bench"
    first, *others = source.profiles
    likewise = f"   # likewise {', '.join(others)}" if others else ""
    lines = [f"dipedl-bench run {source.suite} --profile {first} --out FOLDER{likewise}"]
    lines += [f"python benchmarks/publish.py {source.suite} FOLDER   # its rows, and this page"]
    there = [f"dipedl-bench table {source.suite} --profile {p} {out}" for p in source.rows]
    lines += there[:1]
    return "\n".join(["```console", *(f"$ {line}" for line in lines), "```"])


def _not_run(source: Source) -> Iterator[str]:
    missing = [profile for profile in source.profiles if profile not in source.rows]
    if missing:
        yield f"Profiles that are not yet run: {', '.join(missing)}."


def _section(source: Source, section: Section) -> list[str]:
    """Heading, prose and what is computed; nothing where the rows for it are missing."""
    profiles = section.profiles or source.profiles
    there = [profile for profile in profiles if profile in source.rows]
    found = list(KINDS[section.kind](source, section, there)) if there else []
    if not found and section.kind != "text":
        return []
    return [f"## {section.title}", *filter(None, [section.text.strip()]), *found]


def _receipts(source: Source) -> Iterator[str]:
    every = [row for rows in source.rows.values() for row in rows]
    if every:
        said = (f"- {what}: {', '.join(values)}" for what, values in receipts(every).items())
        yield "## Receipts\n\n" + "\n".join(said)
