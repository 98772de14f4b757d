"""Tables of suites of spectra: classes by name, sets from elsewhere, and the paper's data alone."""

import pytest

pytest.importorskip("rich")
pytest.importorskip("typer")
pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store

from dipedl_bench.tables.blocks import markdown
from dipedl_bench.tables.formatting import set_heading
from dipedl_bench.tables.table import bench_table, paper_row, paper_suite

OPTIONS = {
    "profile": "cpu",
    "ood": ["stars", "supernovae"],
    "shifted": ["real"],
    "classes": 2,
    "n_resamples": 0,
}
METHODS = ("dip-edl", "edl", "max-softmax")


def table_of(root, suite, dataset, **options):
    store = write_synthetic_store(
        root, suite=suite, methods=METHODS, dataset=dataset, **{**OPTIONS, **options}
    )
    return bench_table(store.rows())


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    return table_of(
        tmp_path_factory.mktemp("spectra"), "spectra", "semi-real-scarce", n_resamples=40
    )


def test_recall_of_each_class_stands_beside_accuracy(table):
    known = ("accuracy", "balanced_accuracy", "recall_0", "recall_1", "brier_id")
    assert table.columns()[""] == known
    text = markdown(table)
    assert "| method | accuracy | balanced accuracy | recall of Galaxy | recall of Quasar |" in text
    assert "Known spectra: 50 of the test set" in text and "images" not in text


def test_of_many_classes_the_worst_stands_there(tmp_path):
    made = bench_table(write_synthetic_store(tmp_path, methods=["edl"], n_resamples=0).rows())
    assert made.columns()[""] == ("accuracy", "balanced_accuracy", "worst_recall", "brier_id")
    cells = made.lines[0].cells
    worst = [min(cells[f"recall_{i}"].values[s] for i in range(10)) for s in range(2)]
    assert cells["worst_recall"].values == tuple(worst)


def test_sets_from_elsewhere_have_columns_of_their_own(table):
    assert table.shifted == ("real",) and table.n["shifted/real"] == 30
    by_set = table.columns()
    assert list(by_set) == ["", "stars", "supernovae", "shifted/real"]
    first = ("accuracy", "balanced_accuracy", "recall_0", "recall_1")
    assert by_set["shifted/real"][:4] == tuple(f"{name}/real" for name in first)
    assert "errors_avoided_10/real" in by_set["shifted/real"]
    assert table.columns(extra=True)["shifted/real"] == ()
    assert all(line.cells["recall_1/real"].ci95_images for line in table.lines)


def test_the_paper_s_lamost_numbers_never_stand_beside_semi_real_data(table, tmp_path):
    assert not table.beside_paper and "paper's" not in table.rule
    assert all(cell.paper is None for line in table.lines for cell in line.cells.values())
    assert "Semi-real" in table.note and table.note in markdown(table)
    assert table.as_json()["note"] == table.note
    # the methods are the paper's, and in its order
    assert [line.paper for line in table.lines] == ["EDL", "DIP-EDL", None]
    # rows that say not what they are of are not taken for LAMOST either
    bare = table_of(tmp_path, "spectra", None)
    assert not bare.beside_paper and "Semi-real" in bare.note


def test_the_suite_of_the_paper_s_data_does_stand_beside_it(tmp_path):
    store = write_synthetic_store(
        tmp_path, suite="lamost", methods=METHODS, dataset="lamost", **{**OPTIONS, "ood": ["stars"]}
    )
    few = bench_table(store.rows())
    assert not few.beside_paper and few.lines[0].cells["accuracy"].paper is None
    every = {"n": {**store.rows()[0]["n"], "ood/stars": 95_562}}
    table = bench_table([{**row, **every} for row in store.rows()])
    cells = {line.name: line.cells for line in table.lines}
    assert cells["edl"]["accuracy"].paper.mean == 0.4955
    assert cells["dip-edl"]["auroc/stars"].paper.mean == 0.6789
    assert cells["dip-edl"]["balanced_accuracy"].paper is None
    assert table.note == "" and table.beside_paper
    assert set_heading(table, "stars").startswith("Stars: 95,562 spectra")


@pytest.mark.parametrize("dataset", ["toy-spectra", "semi-real", "semi-real-scarce-published"])
def test_made_up_spectra_are_not_set_against_lamost_whatever_the_suite(dataset, tmp_path):
    table = table_of(tmp_path, "lamost", dataset, ood=["stars"])
    assert not table.beside_paper and table.note


def test_rows_of_before_a_metric_was_there_still_make_a_table(tmp_path):
    store = write_synthetic_store(tmp_path, methods=["edl", "dip-edl"], n_resamples=0)
    rows = store.rows()
    new = ("balanced_accuracy", "recall_", "errors_avoided")
    for row in rows[:2]:  # both methods, seed 10
        row["metrics"] = {k: v for k, v in row["metrics"].items() if not k.startswith(new)}
    table = bench_table(rows)
    assert table.columns()[""] == ("accuracy", "brier_id")
    assert "errors avoided" not in markdown(table)
    mixed = bench_table([*rows[:1], *rows[3:]])  # one method of each kind
    assert "worst_recall" in mixed.columns()[""]
    assert markdown(mixed).count("worst recall") == 1


def test_names_of_the_paper_s_methods_in_suites_of_spectra():
    assert paper_row("spectra", "dip-edl-default") == "DIP-EDL"
    assert (
        paper_suite([{"suite": "spectra"}]) == "" and paper_suite([{"suite": "mnist"}]) == "mnist"
    )
