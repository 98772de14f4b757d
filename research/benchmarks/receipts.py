"""Receipts read again, and the Markdown that pages make of them."""

from pathlib import Path
from typing import Any

from dipedl import __version__
from dipedl_bench.results.damage import read_json

ROOT = Path(__file__).parent.parent


def receipt(name: str) -> dict[str, Any]:
    return read_json(ROOT / "results" / f"{name}.json", f"run: python benchmarks/{name}.py")


def where(row: dict[str, Any]) -> str:
    """Command, machine and configuration; the version too, where it is not that of today."""
    made = row["versions"]["dipedl"]
    older = "" if made == __version__ else f", dipedl {made}"
    return f"`{row['command']}` on {row['device']}, configuration {row['config_hash']}{older}.\n"


def table(head: list[str], rows: list[list[Any]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)
