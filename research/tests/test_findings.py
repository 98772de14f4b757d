"""Sentences on our default: what the rows show, and where it falls short."""

from dataclasses import replace

import pytest

pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store

from dipedl_bench.results.paper import Published
from dipedl_bench.tables.findings import findings, headline, meets_paper, shortfalls
from dipedl_bench.tables.table import Estimate, bench_table, estimate

OPTIONS = {
    "suite": "spectra",
    "ood": ["stars", "supernovae", "real_stars"],
    "shifted": ["real"],
    "classes": 2,
    "n_resamples": 0,
}
METHODS = ("dip-edl", "dip-edl-default", "edl", "max-softmax", "deep-ensemble")


def store_of(root, profile="scarce", methods=METHODS, **options):
    dataset = {"published": "semi-real-scarce-published", "scarce": "semi-real-scarce"}.get(profile)
    made = {**OPTIONS, **options}
    return write_synthetic_store(root, profile=profile, methods=methods, dataset=dataset, **made)


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return bench_table(store_of(tmp_path_factory.mktemp("table")).rows())


def with_cells(table, passes=None, **values):
    """The table with other values of some cells: line -> metric -> one value a seed."""
    lines = []
    for line in table.lines:
        mine = values.get(line.name.replace("-", "_"), {})
        cells = {**line.cells, **{name: estimate(of) for name, of in mine.items()}}
        cost = {**line.cost, "forward_passes": (passes or {}).get(line.name, 1)}
        lines.append(replace(line, cells=cells, cost=cost))
    return replace(table, lines=tuple(lines))


def all_at(auroc, brier=(0.05, 0.05)):
    cells = {f"auroc/{s}": [auroc, auroc] for s in OPTIONS["ood"]}
    return {**cells, "brier_id": list(brier)}


def test_who_ranks_better_is_named_with_numbers(table):
    cells = {"dip_edl": all_at(0.5), "edl": all_at(0.9), "max_softmax": all_at(0.9)}
    cells |= {"dip_edl_default": all_at(0.97), "deep_ensemble": all_at(0.98)}
    made = with_cells(table, {"deep-ensemble": 5}, **cells)
    first = findings(made)[0]
    assert first.startswith("Stars (semi-real): DIP-EDL-DEFAULT has an AUROC of 0.9700 ±0.0000")
    assert "; DIP-EDL: 0.5000" in first and "No other method with a single pass" in first
    assert "With several passes: DEEP-ENSEMBLE (0.9800)." in first
    assert not [s for s in shortfalls(made) if "single pass" in s]
    cells |= {"dip_edl_default": all_at(0.9), "edl": all_at(0.95), "max_softmax": all_at(0.99)}
    made = with_cells(table, **cells | {"deep_ensemble": all_at(0.8)})
    assert "these have a higher mean: MAX-SOFTMAX (0.9900), EDL (0.9500)." in findings(made)[0]
    (short,) = (s for s in shortfalls(made) if "single pass" in s)
    assert short.count("2 rank better, by up to 0.0900") == 3


@pytest.mark.parametrize(
    ("ours", "best", "within"),
    [
        ((0.051, 0.051), (0.049, 0.051), True),  # .001 above, sd .001
        ((0.052, 0.052), (0.049, 0.051), False),
        ((0.05, 0.05), (0.05, 0.05), True),
    ],
)
def test_brier_within_one_standard_deviation_of_the_best(table, ours, best, within):
    poor = all_at(0.9, (0.2, 0.2))
    made = with_cells(
        table,
        dip_edl_default=all_at(0.9, ours),
        edl=all_at(0.9, best),
        dip_edl=poor,
        max_softmax=poor,
        deep_ensemble=poor,
    )
    (said,) = (s for s in findings(made) if s.startswith("Known spectra:"))
    assert (": within one" in said or "the best of all" in said) is within
    assert any("default's Brier" in s for s in shortfalls(made)) is not within


@pytest.mark.parametrize(
    ("name", "ours", "paper", "expected"),
    [
        ("accuracy", 0.99526, 0.9953, True),  # as printed
        ("accuracy", 0.99524, 0.9953, False),
        ("auroc/kmnist", 0.99966, 0.9997, True),
        ("brier_id", 0.00814, 0.0081, True),
        ("brier_id", 0.00816, 0.0081, False),
        ("brier_ood/kmnist", 0.0, 0.0013, True),
    ],
)
def test_met(name, ours, paper, expected):
    assert meets_paper(name, Estimate(ours, 0.0, (ours,), paper=Published(paper, 0.0))) is expected


def test_headline_says_what_was_met_and_who_ranks_better(tmp_path):
    methods = ("edl", "edl-published", "mc-dropout", "dip-edl", "max-softmax")
    store = write_synthetic_store(tmp_path, profile="cpu", methods=methods)
    rows = [
        {**row, "metrics": {**row["metrics"], **changed}}
        for row in store.rows()
        for changed in (GOOD if row["method"] == "dip-edl" else {"auroc/omniglot": 1.0},)
    ]
    lines = headline(bench_table(rows))
    assert "accuracy of 0.9963 ±0.0000 (paper: 0.9953 ±0.0003)" in lines[0]
    assert lines[1] == (
        "DIP-EDL meets or beats the paper's DIP-EDL in 7 of 8 metrics that it has; it falls short "
        "here: on Omniglot (as published) OOD Brier."
    )
    assert any(line.startswith("On Omniglot (as published) its AUROC of 1.0") for line in lines)
    assert not any("K-MNIST its AUROC" in line for line in lines)
    assert headline(bench_table([r for r in rows if r["method"] == "edl"])) == []


GOOD = {
    "accuracy": 0.9963,
    "brier_id": 0.006,
    "auroc/kmnist": 1.0,
    "auroc/omniglot": 0.9999,
    "aupr/kmnist": 1.0,
    "aupr/omniglot": 1.0,
    "brier_ood/kmnist": 0.0012,
    "brier_ood/omniglot": 0.0004,
}
