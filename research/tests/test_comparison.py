"""Methods compared for a paper: tests by hand, and tables that can be read back."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pydantic")

from scipy import stats
from synthetic_store import write_synthetic_store
from typer.testing import CliRunner

from dipedl.metrics import ood_auroc
from dipedl_bench import Store
from dipedl_bench.commands.run import bench as app
from dipedl_bench.results.predictions import ranks_file, read_ranks, write_ranks
from dipedl_bench.results.scores import score
from dipedl_bench.results.significance import compare_aurocs
from dipedl_bench.studies.comparison import (
    compare_methods,
    complete_rows,
    predictions_of,
    write_csv,
    write_latex,
    write_markdown,
)
from dipedl_bench.tables.blocks import ranking
from dipedl_bench.tables.table import bench_table

PUBLISHED = Path(__file__).parents[1] / "results" / "bench"
METHODS = ("edl", "dip-edl", "max-softmax", "energy")
SEEDS = (10, 20, 30, 40)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    root = tmp_path_factory.mktemp("results")
    return write_synthetic_store(root, methods=METHODS, seeds=SEEDS, n_resamples=0)


def holm(p):
    """Adjusted p-values by the definition: the largest of (m - rank) p up to each."""
    ordered = sorted(p)
    return [min(1, max((len(p) - j) * q for j, q in enumerate(ordered) if q <= one)) for one in p]


def test_over_seeds_by_scipy(store):
    table = bench_table(store.rows())
    made = compare_methods(table, metrics=["nll", "auroc/kmnist"])
    assert set(made.tests.values()) == {"seeds"}
    for metric, sign in (("nll", 1), ("auroc/kmnist", -1)):
        values = {line.name: line.cells[metric].values for line in table.lines}
        best = min(values, key=lambda name: sign * np.mean(values[name]))
        others = [name for name in values if name != best]
        p = holm([stats.ttest_rel(values[best], values[name]).pvalue for name in others])
        assert [made.cells[name, metric].p_value for name in others] == pytest.approx(p)
        assert [made.bold(name, metric) for name in others] == [one > 0.05 for one in p]
        cell = made.cells[best, metric]
        assert (cell.best, cell.p_value, cell.n) == (True, None, 4) and made.bold(best, metric)
        assert cell.sd == pytest.approx(np.std(values[best]))


def test_over_rows_where_predictions_are(store):
    table = bench_table(store.rows())
    made = compare_methods(table, store, metrics=["auroc/near_ood", "fpr95/near_ood"])
    assert made.tests == {"auroc/near_ood": "rows", "fpr95/near_ood": "seeds"}
    arrays = {(row["method"], row["seed"]): store.arrays_of(row) for row in store.rows()}

    def scores(name):
        return [
            [
                tuple(arrays[name, seed][split]["uncertainty"] for split in ("test", f"ood/{ood}"))
                for seed in SEEDS
            ]
            for ood in ("kmnist", "omniglot_inverted")
        ]

    (best,) = (n for n in METHODS if made.cells[n, "auroc/near_ood"].best)
    others = [name for name in METHODS if name != best]
    p = holm([compare_aurocs(scores(best), scores(name)).p_value for name in others])
    assert [made.cells[n, "auroc/near_ood"].p_value for n in others] == pytest.approx(p)
    assert "DeLong" in made.caption and "near OOD is K-MNIST, Omniglot (inverted)" in made.caption


def test_ranks_give_the_same_tests_as_uncertainties(store, tmp_path):
    other = Store(tmp_path, store.suite, store.profile)
    for row in store.rows():
        other.append(row)
        write_ranks(ranks_file(other.folder, row), store.arrays_of(row))
    table, metrics = bench_table(store.rows()), ["auroc/kmnist", "auroc/near_ood"]
    by_ranks, made = (compare_methods(table, of, metrics=metrics) for of in (other, store))
    assert by_ranks.tests == made.tests == dict.fromkeys(metrics, "rows")
    for key, cell in made.cells.items():
        assert by_ranks.cells[key].p_value == pytest.approx(cell.p_value)


def test_published_ranks_give_the_published_rows():
    store = Store(PUBLISHED, "mnist", "cpu")
    rows = [row for row in store.rows() if ranks_file(store.folder, row).exists()]
    assert {(row["method"], row["seed"]) for row in rows} >= {("gen", 10), ("vim", 20)}
    for row in rows[::5]:
        ranks = read_ranks(ranks_file(store.folder, row))
        u = ranks["test"]["uncertainty"]
        for ood in ("kmnist", "omniglot", "omniglot_inverted"):
            auroc = ood_auroc(u, ranks[f"ood/{ood}"]["uncertainty"])
            assert auroc == pytest.approx(row["metrics"][f"auroc/{ood}"], abs=1e-12)


def test_a_method_with_few_seeds_is_not_tested(tmp_path):
    store = write_synthetic_store(tmp_path, methods=METHODS, seeds=SEEDS, n_resamples=0)
    rows = [r for r in store.rows() if r["method"] != "energy" or r["seed"] < 30]
    for row in rows:
        row["metrics"]["nll"] -= 9 * (row["method"] == "energy")
    made = compare_methods(bench_table(rows), metrics=["nll"])
    assert made.cells["energy", "nll"].best and made.cells["energy", "nll"].n == 2
    tested = {name: made.cells[name, "nll"].p_value for name in METHODS if name != "energy"}
    assert None not in tested.values() and max(tested.values()) == 1.0
    assert "fewer than 3 of the seeds" in made.caption and "ENERGY: 10, 20" in made.caption


@pytest.mark.parametrize("moved", [("energy",), ("energy", "max-softmax")])
def test_methods_without_the_seeds_of_most_are_not_tested(tmp_path, moved):
    store = write_synthetic_store(tmp_path, methods=METHODS, seeds=SEEDS, n_resamples=0)
    alone = compare_methods(bench_table(r for r in store.rows() if r["method"] not in moved))
    rows = store.rows()
    for row in (row for row in rows if row["method"] in moved):
        row["seed"] += 1
        row["metrics"]["nll"] -= 9
    made = compare_methods(bench_table(rows), metrics=["nll"])
    assert [made.cells[name, "nll"].p_value for name in moved] == [None] * len(moved)
    assert sum(made.cells[name, "nll"].best for name in moved) == 1
    for (name, metric), first in alone.cells.items():
        if metric == "nll":
            assert made.cells[name, "nll"].p_value == (1.0 if first.best else first.p_value)
    assert "fewer than 3 of the seeds 10, 20, 30, 40 are not tested" in made.caption


def test_methods_with_enough_seeds_are_tested_where_most_have_fewer(tmp_path):
    rows = write_synthetic_store(tmp_path, methods=METHODS, seeds=SEEDS, n_resamples=0).rows()
    few = {"energy", "edl"}
    some = [row for row in rows if row["method"] not in few or row["seed"] <= 20]
    some += [{**row, "method": f"{row['method']}-2"} for row in some if row["method"] in few]
    made = compare_methods(bench_table(some))
    alone = compare_methods(bench_table(row for row in rows if row["method"] not in few))
    for (name, metric), cell in alone.cells.items():
        assert made.cells[name, metric].p_value in (cell.p_value, 1.0 if cell.best else None)
    assert {made.cells[name, "nll"].p_value for name in few} == {None}


def test_all_that_equal_the_best_are_bold(tmp_path):
    store = write_synthetic_store(tmp_path, methods=METHODS, seeds=SEEDS[:1], n_resamples=0)
    rows = store.rows()
    for row in rows:
        row["metrics"]["accuracy"] = 0.5 if row["method"] == "edl" else 0.75
    made = compare_methods(bench_table(rows), metrics=["accuracy"])
    bold = {name for name, metric in made.cells if made.bold(name, metric)}
    assert bold == {*METHODS} - {"edl"}


def test_a_metric_that_no_chosen_method_has_in_all_seeds_is_named(tmp_path):
    store = write_synthetic_store(tmp_path, methods=METHODS, seeds=SEEDS, n_resamples=0)
    rows = store.rows()
    del next(row for row in rows if row["method"] == "edl")["metrics"]["nll"]
    with pytest.raises(ValueError, match=r"^metrics: .*'nll'"):
        compare_methods(bench_table(rows), methods=["edl"], metrics=["nll"])


def test_published_predictions_give_the_published_rows():
    store = Store(PUBLISHED, "mnist", "cpu")
    rows = [r for r in store.rows() if r["seed"] == 10 and "aurc" not in r["metrics"]]
    found = {r["method"]: predictions_of(store, r) for r in rows}
    there = {name for name, arrays in found.items() if arrays is not None}
    assert there == {"dip-edl", "max-softmax", "entropy"}
    complete = {r["method"]: r["metrics"] for r in complete_rows(store, rows)}
    for row in rows:
        metrics = complete[row["method"]]
        assert metrics.items() >= row["metrics"].items()
        assert ("augrc/kmnist" in metrics) == (row["method"] in there)
        if row["method"] in there:
            again = score(found[row["method"]])["metrics"]
            for name, value in row["metrics"].items():
                assert again[name] == pytest.approx(value, abs=2e-5), name


def run(*arguments):
    done = CliRunner().invoke(app, ["table", *map(str, arguments)])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_csv_holds_every_cell(store):
    made = compare_methods(bench_table(store.rows()), store)
    assert {"accuracy", "augrc", "auroc/near_ood", "fpr95/far_ood"} <= set(made.metrics)
    text = run("mnist", "--csv", "--out", store.root)
    assert text == write_csv(made)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(METHODS) * len(made.metrics)
    for row in rows:
        metric = "/".join(filter(None, [row["metric"], row["set"]]))
        cell = made.cells[row["method"], metric]
        assert float(row["mean"]) == cell.mean and float(row["sd"]) == cell.sd
        assert bool(int(row["bold"])) == made.bold(row["method"], metric)
        assert row["test"] == made.tests[metric]
        assert row["p_value"] == ("" if cell.p_value is None else str(cell.p_value))


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_bold_cells_are_bold_in_text(store, form):
    chosen = ["--methods", "edl,max-softmax", "--metrics", "auroc/kmnist,aurc"]
    text = run("mnist", f"--{form}", *chosen, "--out", store.root)
    made = compare_methods(
        bench_table(store.rows()),
        store,
        methods=["edl", "max-softmax"],
        metrics=["auroc/kmnist", "aurc"],
    )
    assert text == {"latex": write_latex, "markdown": write_markdown}[form](made)
    for name, title in made.titles.items():
        (line,) = (line for line in text.splitlines() if title in line and "caption" not in line)
        cells = re.split(r" & | \| ", line.removesuffix(r" \\"))
        assert len(cells) == 3
        mark = r"\textbf{" if form == "latex" else "**"
        assert [mark in cell for cell in cells[1:]] == [made.bold(name, m) for m in made.metrics]
        assert f"{made.cells[name, 'auroc/kmnist'].mean:.4f}" in cells[1]
        assert f"{1000 * made.cells[name, 'aurc'].mean:.3f}" in cells[2]


def test_every_table_has_areas_of_risk_times_1000(store):
    table = bench_table(store.rows())
    plain = run("mnist", "--no-trivial", "--out", store.root)
    for name in ("aurc", "augrc"):
        assert f" {name.upper()} × 1000 |" in plain
        assert f"| {name.upper()} |" not in plain
    shown, paper = ranking(table), run("mnist", "--markdown", "--out", store.root)
    assert " AURC × 1000 " in shown and "| AURC × 1000 ↓ |" in paper
    for line in table.lines:
        cell = line.cells["aurc"]
        text = f"{1000 * cell.mean:.3f}"
        assert f"| {text} ±{1000 * cell.sd:.3f} |" in plain
        assert re.search(rf" {line.name} .* {re.escape(text)} ", shown)
        assert re.search(rf"{re.escape(line.title)} \|.*{re.escape(text)}", paper)


def test_latex_has_no_bare_special_letter(store):
    made = compare_methods(bench_table(store.rows()), store, metrics=["fpr95/kmnist"])
    text = write_latex(made).partition("\n")[2]
    assert not re.search(r"(?<!\\)[%#_]", text.replace("_inverted", ""))
    assert text.count("{") - text.count(r"\{") == text.count("}") - text.count(r"\}")
    assert text.isascii()


def test_a_crossed_suite_is_compared_over_data_sets():
    store = Store(PUBLISHED, "second-order", "cpu")
    table = bench_table(store.rows())
    names = ["default", "paper", "bootstrap"]
    made = compare_methods(table, methods=names, metrics=["auroc", "nll"])
    cells = {(line.dataset, line.classifier, line.name): line.cells for line in table.lines}
    places = {key[:2] for key in cells if all((*key[:2], name) in cells for name in names)}
    for metric, name, better in (("auroc", "auroc/far", -1), ("nll", "nll", 1)):
        lines = [p for p in places if all(name in cells[*p, m] for m in names)]
        lines = [p for p in lines if np.isfinite([cells[*p, m][name].mean for m in names]).all()]
        by_data = {
            data: [np.mean([cells[*p, m][name].mean for p in lines if p[0] == data]) for m in names]
            for data in {p[0] for p in lines}
        }
        values = np.round(list(by_data.values()), 12)
        ranks = stats.rankdata(better * values, axis=1).mean(axis=0)
        assert [made.cells[m, metric].mean for m in names] == pytest.approx(values.mean(axis=0))
        assert [made.cells[m, metric].rank for m in names] == pytest.approx(ranks)
        best = int(np.argmin(better * values.mean(axis=0)))
        others = [i for i in range(3) if i != best]
        p = [
            stats.wilcoxon(values[:, best], values[:, i], zero_method="pratt").pvalue
            for i in others
        ]
        assert [made.cells[names[i], metric].p_value for i in others] == pytest.approx(holm(p))
    assert "Nemenyi" in made.caption and "Friedman" in made.caption


def test_unknown_names_are_refused(store):
    table = bench_table(store.rows())
    with pytest.raises(ValueError, match="unknown method 'edll', did you mean 'edl'"):
        compare_methods(table, methods=["edll"])
    with pytest.raises(ValueError, match="unknown metric 'auroc/kmnits'"):
        compare_methods(table, metrics=["auroc/kmnits"])
