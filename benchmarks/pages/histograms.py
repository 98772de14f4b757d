"""The picture of the paper's confidence histograms, from published predictions of DIP-EDL."""

from __future__ import annotations

from pathlib import Path

from dipedl.bench.report.histograms import arrays_from_parts, confidence, histogram, vacuity

from .source import Source

__all__ = ["draw", "picture"]


def picture(suite: str, profile: str) -> str:
    """Name of the file."""
    return f"{suite}_{profile}_confidence.png"


def draw(source: Source, folder: Path) -> None:
    """Confidence beside vacuity, all published seeds together, for each profile that has any."""
    import matplotlib.pyplot as plt

    for profile in source.rows:
        runs = [arrays_from_parts(parts) for parts in source.parts(profile).values()]
        if runs:
            figure, axes = plt.subplots(1, 2, figsize=(9, 3.4), layout="constrained")
            histogram(confidence(runs), "confidence", axes[0])
            histogram(vacuity(runs), "vacuity", axes[1])
            axes[0].legend(frameon=False, fontsize="small")
            figure.savefig(folder / picture(source.suite, profile), dpi=150)
            plt.close(figure)
