"""The page on the paper's tables of results: each of its cells beside ours."""

from pathlib import Path
from typing import Any

from write_pages import page

from dipedl_bench.spec.suite import load_suite
from dipedl_bench.tables.formatting import metric_title, number, published_text
from dipedl_bench.tables.paper_cells import (
    NEAREST_FIRST,
    SUITES,
    VERDICTS,
    PaperCell,
    count_verdicts,
    paper_cells,
)


def page_of_paper(root: Path) -> str:
    """Return the page as Markdown, from the folder of published results."""
    cells = paper_cells(root)
    by_suite = {load_suite(s).title: [c for c in cells if c.suite == s] for s in SUITES}
    titles = {**by_suite, "all": cells}
    return page(
        "paper.md",
        verdicts=VERDICTS,
        nearest=NEAREST_FIRST,
        counts={title: count_verdicts(of) for title, of in titles.items()},
        total=len(cells),
        cells={title: [texts(cell) for cell in of] for title, of in by_suite.items()},
    )


def texts(cell: PaperCell) -> dict[str, Any]:
    """Return a cell as text; `where` is profile and number of seeds."""
    ours, where = cell.ours, ""
    if ours:
        seeds = len(ours.values)
        where = f"`{cell.profile}`, {seeds} seed{'s' * (seeds > 1)}"
    sd = f" ±{number(ours.sd)}" if ours and len(ours.values) > 1 else ""
    return {
        "method": cell.method,
        "metric": metric_title(cell.metric, with_set=True, suite=cell.suite),
        "paper": published_text(cell.paper),
        "ours": number(ours.mean) + sd if ours else "",
        "where": where,
        "verdict": cell.verdict,
        "cause": cell.cause,
    }
