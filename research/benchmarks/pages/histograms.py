"""Pictures: the paper's confidence histograms, and coverage where the truth is known."""

from __future__ import annotations

from pathlib import Path

from dipedl_bench.report.figures import (
    arrays_from_parts,
    confidence,
    coverage_figure,
    histogram,
    vacuity,
)
from dipedl_bench.spec.captions import captions_of
from dipedl_bench.tables.pairs import with_intervals

from .source import Source

__all__ = ["COVERAGE", "draw", "picture"]

#: Coverage against the level of intervals, from the folder of the pages; users' docs show it too.
COVERAGE = "../../docs/images/intervals.png"


def picture(suite: str, profile: str) -> str:
    """Name of the file."""
    return f"{suite}_{profile}_confidence.png"


def draw(source: Source, folder: Path) -> None:
    """Confidence beside vacuity, all published seeds together, and coverage, as far as known."""
    import matplotlib.pyplot as plt

    sections = captions_of(source.suite).page.sections
    pictured = {
        of
        for section in sections
        if section.kind == "histograms"
        for of in section.profiles or source.profiles
    }
    for profile in source.rows:
        table = source.tables[profile]
        if table.crossed and with_intervals(table):
            coverage_figure(table).savefig(
                folder.parent / COVERAGE, dpi=110, metadata={"Software": None}
            )
        runs = [arrays_from_parts(parts) for parts in source.parts(profile).values()]
        if runs and profile in pictured:
            figure, axes = plt.subplots(1, 2, figsize=(9, 3.7), layout="constrained")
            histogram(confidence(runs), "confidence", axes[0])
            histogram(vacuity(runs), "vacuity", axes[1])
            named = axes[0].get_legend_handles_labels()
            figure.legend(*named, loc="outside upper center", ncols=4, frameon=False)
            figure.savefig(folder / picture(source.suite, profile), dpi=150)
            plt.close(figure)
