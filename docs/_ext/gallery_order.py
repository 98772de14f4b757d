"""The order of the gallery: simple examples first, then decisions, then what lies behind."""

from __future__ import annotations

from pathlib import Path

ORDER = (
    *("any_classifier", "unknown_classes", "table_with_gaps", "network"),
    *("p_values", "false_alarm_rate", "prediction_sets", "reject", "reliability", "rare_class"),
    *("drift", "three_uncertainties", "credible_intervals", "densities", "streaming"),
    "methods_compared",
)


class SimpleFirst:
    """Sort key of the examples of a folder, by the names of their files."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __repr__(self) -> str:
        """Without an address, so that Sphinx sees the same settings each time."""
        return "<SimpleFirst>"

    def __call__(self, file: str) -> int:
        """Place of a file; one that is not in the order is an error, so that none is forgotten."""
        return ORDER.index(Path(file).stem.removeprefix("plot_"))
