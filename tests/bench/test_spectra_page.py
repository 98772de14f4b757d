"""The page of results on spectra: what the rows say, computed, and nothing else."""

import importlib.util
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from dipedl.bench.pages.spectra import page_of_spectra
from dipedl.bench.report.captions import headline
from dipedl.bench.report.spectra_findings import (
    auroc_by_set,
    findings,
    share_interval,
    shortfalls,
)
from dipedl.bench.results.synthetic import write_synthetic_store
from dipedl.bench.tables.cells import cell_over_seeds
from dipedl.bench.tables.table import bench_table

OPTIONS = {
    "suite": "spectra",
    "ood": ["stars", "supernovae", "real_stars"],
    "shifted": ["real"],
    "classes": 2,
    "n_resamples": 0,
}
METHODS = ("dip-edl", "dip-edl-default", "edl", "max-softmax", "deep-ensemble")
BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


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
        cells = {**line.cells, **{name: cell_over_seeds(of) for name, of in mine.items()}}
        cost = replace(line.cost, forward_passes=(passes or {}).get(line.name, 1))
        lines.append(replace(line, cells=cells, cost=cost))
    return replace(table, lines=tuple(lines))


def all_at(auroc, brier=(0.05, 0.05)):
    cells = {f"auroc/{s}": [auroc, auroc] for s in OPTIONS["ood"]}
    return {**cells, "brier_id": list(brier)}


def test_the_best_with_a_single_pass_is_said_to_be_it(table):
    made = with_cells(
        table,
        {"deep-ensemble": 5},
        dip_edl_default=all_at(0.97),
        dip_edl=all_at(0.5),
        edl=all_at(0.9),
        max_softmax=all_at(0.9),
        deep_ensemble=all_at(0.98),
    )
    said = findings(made)
    assert said[0].startswith("Stars (semi-real): DIP-EDL-DEFAULT has an AUROC of 0.9700 ±0.0000")
    assert "the paper's preset (DIP-EDL): 0.5000" in said[0]
    assert "No other method with a single pass ranks it better." in said[0]
    assert "With several passes: DEEP-ENSEMBLE (0.9800)." in said[0]
    assert not [s for s in shortfalls(made) if "single pass" in s]


def test_who_is_better_is_named_with_numbers(table):
    made = with_cells(
        table,
        dip_edl_default=all_at(0.9),
        dip_edl=all_at(0.5),
        edl=all_at(0.95),
        max_softmax=all_at(0.99),
        deep_ensemble=all_at(0.8),
    )
    said = findings(made)[0]
    assert "single pass these are above: MAX-SOFTMAX (0.9900), EDL (0.9500)." in said
    short = shortfalls(made)
    assert "2 rank better, by up to 0.0900." in short[0]
    assert len([s for s in short if "single pass" in s]) == 3


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


def test_the_report_begins_with_the_same_words(table):
    assert headline(table) == findings(table)


def test_without_the_default_there_is_no_headline(tmp_path):
    made = bench_table(store_of(tmp_path, methods=["edl"]).rows())
    assert findings(made) == shortfalls(made) == []


def test_one_seed_has_no_standard_deviation(tmp_path):
    single = bench_table(store_of(tmp_path, seeds=[10]).rows())
    poor = {"brier_id": [0.2]}
    made = with_cells(single, dip_edl_default=poor, dip_edl=poor, max_softmax={"brier_id": [0.1]})
    (said,) = (s for s in findings(made) if s.startswith("Known spectra:"))
    assert said.endswith("a single seed has no standard deviation to compare them by.")
    assert not any("whose standard deviation" in s for s in shortfalls(made))


def test_a_method_that_is_blind_to_one_set_is_seen(table):
    made = with_cells(table, edl={**all_at(0.9), "auroc/supernovae": [0.2, 0.4]})
    heads, rows = auroc_by_set(made)
    sets = ["Stars (semi-real)", "Supernovae (real, noise added)", "Stars (real)"]
    assert heads == ["method", *sets, "mean", "lowest"]
    (mine,) = (row for row in rows if row[0] == "EDL")
    assert mine[2:] == ["0.3000 ±0.1000", "0.9000 ±0.0000", "0.7000", "0.3000"]


def test_real_spectra_have_intervals_and_a_rejection(table):
    said = findings(table)[-1]
    assert said.startswith("Real galaxies and quasars (30):") and "95 % over" in said
    assert "least trusted tenth" in said
    cell = cell_over_seeds([0.9, 0.8], [(0.7, 0.95), (0.6, 0.85)])
    assert share_interval(cell) == "0.850 (0.650 to 0.900)"
    assert share_interval(cell_over_seeds([0.9])) == "0.900" and share_interval(None) == ""
    lower = with_cells(table, dip_edl_default={"balanced_accuracy/real": [0.8, 0.8]})
    assert any("balanced accuracy is 0.8000" in s for s in shortfalls(lower))


def test_the_page_says_what_is_there_and_what_is_not(tmp_path):
    empty = page_of_spectra(tmp_path)
    assert empty.count("not yet run.") == 3 and empty.count("Not yet run.") == 2
    assert "semi-real" in empty and "Receipts" not in empty
    store_of(tmp_path)
    page = page_of_spectra(tmp_path)
    assert page.count("not yet run.") == 2 and "EDL was not yet run as published." in page
    assert "Profile `scarce`, 2 seeds:" in page and "## Receipts" in page
    (left,) = (line for line in page.splitlines() if line.startswith("Not yet run, with seeds: "))
    assert "PostNet (10, 20, 30, 40)" in left and "EDL (30, 40)" in left
    store_of(tmp_path, "published", ("edl", "dip-edl"))
    assert "EDL did not collapse as published" in page_of_spectra(tmp_path)
    assert "As published, 0 of 2 methods lose a class in some seed; in the healthy" in (
        page_of_spectra(tmp_path)
    )
    assert "(paper " not in page


def test_shared_parts_are_counted_once_in_the_time_of_all(tmp_path):
    page_rows = store_of(tmp_path, methods=["dip-edl", "edl"], seeds=[10])
    parts = page_rows.rows()[0]["parts"]
    assert len(parts) == 2
    # two methods and two parts, of 2.5 s each
    assert "shared parts once: 10.0 s" in page_of_spectra(tmp_path)


def test_published_rows_and_diagnoses_make_the_page(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    sys.modules.pop("publishing", None)
    spec = importlib.util.spec_from_file_location("pub", BENCHMARKS / "publish_spectra.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    store = store_of(tmp_path / "run", "published", ("edl", "dip-edl"))
    last = store.rows()[-1]
    store.append({**last, "metrics": {**last["metrics"], "recall_1": 0.0}, "config_hash": "new"})
    root = tmp_path / "published"
    assert script.publish([tmp_path / "run", tmp_path / "none"], "published", root) == 3
    target = root / "spectra" / "published"
    found = json.loads((target / "diagnosis.json").read_text())
    assert found.keys() == {"edl", "dip-edl"}
    page = page_of_spectra(root)
    assert "Measured, by seed: it said Galaxy 25 / 25, Quasar 25 / 25 times" in page
    assert script.publish([tmp_path / "run"], "cpu", root) == 0
    # rows of a run whose arrays are gone: the diagnosis stays
    for file in store.folder.rglob("*.npz"):
        file.unlink()
    script.publish([tmp_path / "run"], "published", root)
    assert json.loads((target / "diagnosis.json").read_text()) == found
