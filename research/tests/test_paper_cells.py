"""The paper's cells beside ours: which row counts, and how it is judged."""

import pytest

pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store

from dipedl_bench.results.paper import Published, published_rows
from dipedl_bench.tables.paper_cells import VERDICTS, count_verdicts, paper_cells
from dipedl_bench.tables.table import estimate


@pytest.mark.parametrize(
    ("metric", "values", "paper", "verdict"),
    [
        ("accuracy", [0.90, 0.92], Published(0.93, 0.01), "equal"),  # .02 apart, sd .0141
        ("accuracy", [0.90, 0.90], Published(0.93, 0.01), "worse"),
        ("accuracy", [0.96, 0.96], Published(0.93, 0.01), "better"),
        ("brier_id", [0.96], Published(0.93, 0.01), "worse"),
        ("brier_ood/kmnist", [0.90], Published(0.93, 0.01), "better"),
        ("auroc/kmnist", [0.99953], Published(1.0, 0.0, decimals=3), "equal"),  # rounding
        ("auroc/kmnist", [0.9994], Published(1.0, 0.0, decimals=3), "worse"),
        ("auroc/kmnist", [0.9], Published(1.0, None), "no data"),
        ("auroc/kmnist", [0.9], None, "no data"),
    ],
)
def test_a_cell_is_judged_by_two_standard_deviations(metric, values, paper, verdict):
    assert estimate(values, paper=paper, metric=metric).verdict == verdict


def test_every_cell_of_the_paper_is_there_once(tmp_path):
    cells = paper_cells(tmp_path)
    assert len(cells) == len({(c.suite, c.method, c.metric) for c in cells}) == 168
    assert count_verdicts(cells) == {**dict.fromkeys(VERDICTS, 0), "no data": 168}
    sets = {"mnist": {"kmnist", "omniglot"}, "cifar10": {"cifar100", "svhn"}, "lamost": {"stars"}}
    for suite, ood in sets.items():
        assert {c.metric.partition("/")[2] for c in cells if c.suite == suite} == {"", *ood}
        metrics = [list(of) for of in published_rows(suite).values()]
        assert all(of == metrics[0] for of in metrics)
        assert {c.metric for c in cells if c.suite == suite} == set(metrics[0])


def test_the_row_with_the_paper_s_name_of_the_nearest_profile_counts(tmp_path):
    methods = ("edl", "dip-edl", "dip-edl-maf")
    write_synthetic_store(tmp_path, profile="cpu", methods=methods)
    cells = {(c.method, c.metric): c for c in paper_cells(tmp_path) if c.suite == "mnist"}
    assert {m for (m, _), c in cells.items() if c.ours} == {"EDL", "DIP-EDL"}
    assert cells["EDL", "accuracy"].profile == "cpu"
    assert cells["R-EDL", "accuracy"].verdict == "no data"
    # a profile nearer to the paper's settings takes its place, whatever its numbers
    write_synthetic_store(tmp_path, profile="paper", methods=["edl"])
    again = {(c.method, c.metric): c for c in paper_cells(tmp_path) if c.suite == "mnist"}
    assert again["EDL", "accuracy"].profile == "paper"
    assert again["DIP-EDL", "accuracy"].profile == "cpu"
    worse = [c for c in again.values() if c.verdict == "worse"]
    assert worse and all(c.cause for c in worse)
    unexplained = [c for c in worse if c.profile == "paper"]
    assert all(c.cause == "unexplained" for c in unexplained)


def test_rows_of_other_data_have_no_number_of_the_paper(tmp_path):
    options = {"suite": "lamost", "ood": ["stars"], "classes": 2, "n_resamples": 0}
    write_synthetic_store(
        tmp_path, profile="cpu", methods=["edl"], dataset="semi-real-scarce", **options
    )
    assert count_verdicts(paper_cells(tmp_path))["no data"] == 168
