"""Ablation, gamma and sigma as Markdown, out of what was published of a run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..tables.formatting import metric_title

__all__ = ["SWEEPS", "sweep_sections"]

#: Name, title and a word on each.
SWEEPS = (
    (
        "ablation",
        "Component ablation",
        "A factor of n exp(z) p that is left out is replaced by one. Exact arithmetic: without the "
        "density all images have the same evidence, so AUROC is 0.5 and AUPR that of guessing.",
    ),
    (
        "float32",
        "The same, ranked in float32",
        "Vacuity in single precision, as the released code has it: where the evidence is constant, "
        "the rounding of sums ranks the images. This is how the paper's .51 to .53 come about; the "
        "order of the operations decides which way it leans: six ways to write the sum gave .48 to "
        ".54 from the same logits.",
    ),
    ("gamma", "Scale of the evidence", "gamma multiplies the evidence; the ranking cannot change."),
    (
        "sigma",
        "A corrupted density",
        "Gaussian noise of standard deviation sigma on z, five draws; at inf z is noise only. "
        "± is over draws.",
    ),
)


def sweep_sections(folder: Path, ood: Sequence[str]) -> str:
    """Sections of a page out of ``sweeps.json`` in a folder.

    Parameters
    ----------
    folder : Path
        Of a suite and profile below results/bench.
    ood : sequence of str
        OOD sets that get columns.
    """
    kept = json.loads((folder / "sweeps.json").read_text(encoding="utf-8"))
    seeds = ", ".join(map(str, kept["seeds"]))
    swept = [
        "accuracy",
        "brier_id",
        *(f"{kind}/{s}" for s in ood for kind in ("auroc", "aupr", "brier_ood")),
    ]
    blocks = []
    for name, title, text in SWEEPS:
        lines = kept["sweeps"][name].values()
        names = [m for m in swept if any(m in line for line in lines)]
        rows = [[line["title"], *(_cell(line.get(m)) for m in names)] for line in lines]
        heads = ["", *(metric_title(m, with_set=True) for m in names)]
        blocks.append(f"## {title}\n\nDIP-EDL, seeds {seeds}. {text}\n\n" + _table(heads, rows))
    return "\n".join(blocks)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join("| " + " | ".join(map(str, line)) + " |\n" for line in lines)


def _cell(cell: dict[str, Any] | None) -> str:
    if cell is None:
        return ""
    spread = f" ±{cell['sd']:.4f}" if len(cell["values"]) > 1 else ""
    paper = cell["paper"] and f" (paper {cell['paper']['mean']:.4f})"
    return f"{cell['mean']:.4f}{spread}{paper or ''}"
