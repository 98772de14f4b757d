"""The page of all methods of the experiments, beside the pages of the site: to sort and filter."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sphinx.application import Sphinx

RESULTS = Path(__file__).parents[2] / "research" / "results" / "bench"


def write_page(app: Sphinx, error: Exception | None) -> None:
    """Write the page into the built site, unless its rows are older than it."""
    if error is not None or app.builder.name != "html":
        return
    page = Path(app.outdir, "methods.html")
    latest = max(rows.stat().st_mtime for rows in RESULTS.glob("*/*/rows.jsonl"))
    if not page.exists() or page.stat().st_mtime < latest:
        from dipedl_bench.report.methods_page import render_methods

        page.write_text(render_methods(RESULTS), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the page after all others."""
    app.connect("build-finished", write_page)
    return {"parallel_read_safe": True}
