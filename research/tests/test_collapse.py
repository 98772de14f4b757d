"""The collapse table out of rows made by hand."""

import pytest

from dipedl_bench.tables.collapse import (
    collapse_frame,
    collapse_lines,
    collapse_summary,
    lost,
    one_class,
)

SHARE = 0.772  # of galaxies


def row(method, seed, galaxy, quasar, profile="published", auroc=0.5):
    metrics = {
        "accuracy": SHARE * galaxy + (1 - SHARE) * quasar,
        "recall_0": galaxy,
        "recall_1": quasar,
        "auroc/stars": auroc,
    }
    return {
        "suite": "spectra",
        "profile": profile,
        "method": method,
        "title": method.upper(),
        "seed": seed,
        "config_hash": "a",
        "metrics": metrics,
        "intervals": {},
        "baselines": {},
        "n": {"test": 887, "ood/stars": 100},
        "seconds": {"train": 1.0, "score": 1.0},
        "cpu_seconds": {"train": 1.0, "score": 1.0},
        "peak_memory_mb": 1.0,
        "forward_passes": 1,
        "n_parameters": 7,
    }


def healthy(method, galaxy=0.99, quasar=0.93, auroc=0.97):
    return row(method, 10, galaxy, quasar, "scarce", auroc)


def test_a_class_that_is_never_found_is_a_collapse_and_so_is_its_opposite():
    """As the paper's EDL: two seeds say Galaxy only, two Quasar only."""
    seeds = [(1, 0), (1, 0), (0, 1), (0, 1)]
    broken = [row("edl", 10 * i, *recalls) for i, recalls in enumerate(seeds)]
    (line,) = collapse_lines(broken, [healthy("edl")])
    assert line.loses_class
    assert one_class(line.published) == 4 and lost(line.published) == 4
    assert line.published.cells["accuracy"].mean == pytest.approx(0.5)
    assert line.published.cells["accuracy"].sd == pytest.approx(
        SHARE - 0.5
    )  # the paper prints .4955, .2707
    assert "ReLU" in line.cause and "exponential" in line.cure


def test_a_few_rows_of_a_lost_class_do_not_hide_the_collapse():
    (line,) = collapse_lines([row("postnet", 10, 1.0, 0.04), row("postnet", 20, 0.9, 0.8)], [])
    assert line.loses_class and lost(line.published) == 1 and one_class(line.published) == 0
    assert line.healthy is None


def test_one_line_for_each_method_of_the_paper_whatever_its_variants():
    broken = [row("max-softmax", 10, 1.0, 1.0), row("dip-edl", 10, 1.0, 0.7)]
    sound = [healthy("dip-edl"), healthy("dip-edl-default", quasar=0.5), healthy("energy")]
    (line,) = collapse_lines(broken, sound)
    assert (line.line.paper, line.line.name) == ("DIP-EDL", "dip-edl")
    assert line.healthy.cells["recall_1"].mean == 0.93
    assert collapse_lines([], []) == [] and collapse_summary(()) == ""


def test_the_grid_shows_both_sides_of_every_number():
    lines = collapse_lines([row("edl", 10, 1.0, 0.0)], [healthy("edl"), healthy("r-edl")])
    cells = collapse_frame(lines, ("Galaxy", "Quasar")).set_index("method")
    assert list(cells.loc["EDL"])[1:4] == ["1.0000 → 0.9900", "0.0000 → 0.9300", "1 of 1 → 0 of 1"]
    assert cells.loc["R-EDL", "AUROC, stars"] == "– → 0.9700"
