"""The price of a low OOD Brier score: what is paid, what is bought, and where nothing is known."""

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("pydantic")

from synthetic_store import write_synthetic_store

from dipedl.dirichlet import Dirichlet
from dipedl.metrics import brier_score
from dipedl_bench.report.figures import budget_figure, price_figure
from dipedl_bench.results.metrics import ood_brier
from dipedl_bench.results.paper import published_price
from dipedl_bench.studies.comparison import compare_methods, write_markdown
from dipedl_bench.studies.price import budget_sweep, price_points, temperature_scores
from dipedl_bench.studies.sweeps import Parts, gamma_sweep
from dipedl_bench.tables.blocks import blocks, markdown
from dipedl_bench.tables.formatting import no_price, price_text
from dipedl_bench.tables.provenance import describe_older, older_rows
from dipedl_bench.tables.table import bench_table

sys.path.append(str(Path(__file__).parent.parent / "benchmarks"))

from answer_prior import answered, prior_of
from paper_page import price_rows
from results import page_of


@pytest.fixture
def parts():
    """Labels drawn from the probabilities of a classifier, and a density that knows OOD rows."""
    rng = np.random.default_rng(0)

    def proba(m):
        weights = np.exp(4 * rng.normal(size=(m, 4)))
        return weights / weights.sum(axis=1, keepdims=True)

    p = {"test": proba(4000), "far": proba(500)}
    y = np.minimum((p["test"].cumsum(1) < rng.random((4000, 1))).sum(1), 3)
    return Parts(1000.0, y, p, {"test": rng.normal(size=4000), "far": rng.normal(-3, 1, 500)})


def test_a_larger_budget_costs_more_and_buys_more(parts):
    found = budget_sweep(parts, [0.0, 0.02, 0.05, 0.2, 1.0])
    prices, bought = ([of[name] for of in found.values()] for name in ("price", "brier_ood/far"))
    assert prices == sorted(prices) and bought == sorted(bought, reverse=True)
    bare = brier_score(parts.y, parts.proba["test"])
    np.testing.assert_allclose(prices[0], 0, atol=0.005)
    # in the mean over both halves new rows pay what the budget says
    np.testing.assert_allclose(prices[1:4], [0.02, 0.05, 0.2], atol=0.02)
    for of in found.values():
        np.testing.assert_allclose(of["brier_id"], bare * (1 + of["price"]), rtol=0.01)


def test_no_budget_is_judged_on_rows_that_it_was_fitted_on(parts):
    """With one half of the scores far lower, the half-point of the other half is above them all."""
    order = np.random.default_rng(0).permutation(len(parts.y))
    first = np.zeros(len(order), bool)
    first[np.array_split(order, 2)[0]] = True
    low = {**parts.z, "test": np.where(first, parts.z["test"] - 50, parts.z["test"])}
    moved = Parts(parts.n, parts.y, parts.proba, low)
    price = budget_sweep(moved, [0.05])[0.05]["price"]
    gain = brier_score(parts.y, np.full((len(order), 4), 0.25)) / brier_score(
        parts.y, parts.proba["test"]
    )
    # fitted on the upper half, every row of the lower half loses all; the other way round none does
    np.testing.assert_allclose(price, (gain - 1) / 2, rtol=0.1)


def test_a_temperature_buys_and_mends_what_is_overconfident(parts):
    found = temperature_scores(parts)  # labels are drawn from the probabilities: T is 1
    assert found["price"] == pytest.approx(0, abs=0.002)
    squared = {s: p**2 / (p**2).sum(axis=1, keepdims=True) for s, p in parts.proba.items()}
    sure = temperature_scores(Parts(parts.n, parts.y, squared, parts.z))  # T is 2
    assert sure["brier_id"] == pytest.approx(found["brier_id"], rel=0.01)
    assert sure["price"] < -0.02


def test_entropy_is_a_score_of_the_classifier_alone(parts):
    noise = Parts(parts.n, parts.y, parts.proba, {s: -z for s, z in parts.z.items()})
    kinds = [budget_sweep(of, [0.05], "entropy") for of in (parts, noise)]
    assert kinds[0] == kinds[1]


def priced_rows(tmp_path, **options):
    """A store whose methods share the network of max softmax."""
    store = write_synthetic_store(tmp_path, profile="cpu", **options)
    rows = store.rows()
    network = {"name": "cnn", "config_hash": "shared"}
    for row in rows:
        if row["parts"]:
            row["parts"]["classifier"] = {**row["parts"]["classifier"], **network}
        if row["method"] == "max-softmax":
            row["config"]["estimator"] = "MaxSoftmax"
    return rows


def test_the_price_is_relative_to_the_bare_network_of_each_seed(tmp_path):
    rows = priced_rows(tmp_path)
    table = bench_table(rows)
    cells = {line.name: line.cells for line in table.lines}
    score = {(r["method"], r["seed"]): r["metrics"]["brier_id"] for r in rows}
    each = [score["dip-edl", seed] / score["max-softmax", seed] - 1 for seed in (10, 20)]
    assert cells["dip-edl"]["price"].values == pytest.approx(each)
    assert cells["max-softmax"]["price"].mean == 0
    assert "price" not in cells["edl"]  # a network of its own
    assert no_price(table) == ""
    # one seed without the bare network: no price, rather than that of the other seed
    fewer = [r for r in rows if (r["method"], r["seed"]) != ("max-softmax", 20)]
    assert "price" not in {line.name: line.cells for line in bench_table(fewer).lines}["dip-edl"]
    # a network of the same settings that another machine trained is another network
    rows = priced_rows(tmp_path)
    for row in rows:
        if row["method"] == "max-softmax":
            row["parts"]["classifier"]["device"] = "another machine"
    cells = {line.name: line.cells for line in bench_table(rows).lines}
    assert "price" not in cells["dip-edl"] and cells["max-softmax"]["price"].mean == 0


def test_a_page_says_that_no_price_can_be_computed(tmp_path):
    write_synthetic_store(tmp_path, profile="gpu", methods=("dip-edl", "edl"))
    page = page_of("mnist", tmp_path)
    assert "No price of these OOD Brier scores can be computed" in page
    points = price_points(bench_rows := priced_rows(tmp_path / "priced"), [])
    assert {p.title: p.price is None for p in points if p.kind == "method"} == {
        "DIP-EDL": False,
        "EDL": True,
        "MAX-SOFTMAX": False,
    }
    without = [row for row in bench_rows if row["method"] != "max-softmax"]
    assert no_price(bench_table(without)) in markdown(bench_table(without))
    unpriced = [p for p in price_points(without, []) if p.kind == "method"]
    assert all(p.price is None for p in unpriced)
    # such methods stand in the table all the same, without a price and after all others
    prices = {row["title"]: row["price"] for row in price_rows("mnist", unpriced)}
    assert prices == {"EDL": "", "DIP-EDL": ""}
    named = [p._replace(title="Max softmax") if p.price == 0 else p for p in points]
    rows = price_rows("mnist", [p for p in named if p.kind == "method"])
    assert [row["price"] for row in rows].index("") == len(rows) - 1
    assert {row["title"]: row["price"] for row in rows}["Max softmax"] == "0.0%"
    # and the figures have no curve of them, nor a panel where nothing is published
    assert not price_figure({}, {}).axes
    assert len(budget_figure({"a network": unpriced}, {"kmnist": "K-MNIST"}).axes[1].lines) == 1


@pytest.mark.parametrize("own", [0.1, 1.0])
def test_the_same_evidence_with_another_prior(own):
    rng = np.random.default_rng(0)
    evidence = {"test": rng.exponential(20, (300, 4)), "brier_ood/far": rng.exponential(2, (50, 4))}
    y = evidence["test"].argmax(axis=1)
    run = {
        name: {"concentration": own + of, "log_evidence": np.log(of.sum(axis=1)), "y": y}
        for name, of in evidence.items()
    }
    assert prior_of(run["test"]) == pytest.approx(own)
    for prior in (own, 5.0, 1e9):
        proba = {n: Dirichlet(of + prior, prior=prior).mean for n, of in evidence.items()}
        scores = answered(run, prior)
        assert scores["brier_id"] == pytest.approx(brier_score(y, proba["test"]))
        assert scores["brier_ood/far"] == pytest.approx(ood_brier(proba["brier_ood/far"]))
    assert scores["brier_ood/far"] == pytest.approx(0, abs=1e-12)  # at last the uniform answer


@pytest.mark.parametrize(
    ("change", "older"),
    [
        ({}, {"dip-edl": (10, 20)}),
        ({"time": "2027-11-28T04:00:00+00:00"}, {}),
        ({"estimator": "EDL"}, {}),
        ({"calibrator": "passthrough"}, {}),
    ],
)
def test_rows_older_than_the_default_are_named_wherever_they_stand(tmp_path, change, older):
    """Of our methods those with a temperature and a budget; a change of the default moves them."""
    rows = write_synthetic_store(tmp_path, profile="cpu", methods=("dip-edl", "max-softmax")).rows()
    for row in rows:
        row["time"] = change.get("time", "2026-11-26T04:00:00+00:00")
        if row["method"] == "dip-edl":
            row["config"]["estimator"] = change.get("estimator", "DIPClassifier")
            row["config"]["arguments"] = {"calibrator": change.get("calibrator")}
    assert older_rows(rows) == older
    text = describe_older(bench_table(rows), rows)
    assert ("DIP-EDL (seeds 10, 20)" in text) == bool(text) == bool(older)
    points = price_points(rows, [])
    assert [p.title for p in points if p.older] == ["DIP-EDL"] * len(older)
    marked = [row["title"] for row in price_rows("mnist", points) if row["title"].endswith("‡")]
    assert len(marked) == len(older)


def test_every_table_of_ood_brier_scores_has_what_they_cost(tmp_path):
    table = bench_table(priced_rows(tmp_path))
    frames = [frame for _, frame in blocks(table) if "OOD Brier" in frame.columns]
    assert len(frames) == len(table.ood) > 1
    paper = write_markdown(compare_methods(table, metrics=["price"])).replace("*", "")
    for frame in frames:
        for line, brier, price in zip(table.lines, frame["ID Brier"], frame["price"], strict=True):
            assert brier.startswith(f"{line.cells['brier_id'].mean:.4f}")
            found = line.cells.get("price")
            text = f"{price_text(found.mean)} ±{found.sd:.1%}" if found else ""
            assert price == text and text in paper


def test_the_paper_s_price_is_that_of_its_ablation():
    assert published_price("cifar10") == pytest.approx(0.0978 / 0.0831 - 1)
    assert published_price("mnist") == pytest.approx(0.0079 / 0.0069 - 1)
    assert published_price("lamost") is None and published_price("defaults") is None


def test_rows_that_differ_in_the_budget_alone_are_one_curve(tmp_path, parts):
    names = ("max-softmax", "dip-edl-default", "dip-edl-budget-5", "dip-edl-caution-10")
    names = (*names, "dip-edl-layers", "dip-edl")
    rows = priced_rows(tmp_path, methods=names)
    caution = {"class": "CautionBudget", "settings": {"budget": 0.05}}
    arguments = {
        "dip-edl-default": {"normalizer": None},
        "dip-edl-budget-5": {"normalizer": caution},
        "dip-edl-caution-10": {"normalizer": None, "caution": 0.1},
        "dip-edl-layers": {"normalizer": None, "density": "layers"},
        "dip-edl": {"normalizer": {"class": "ZScore", "settings": {}}},
    }
    for row in rows:
        row["config"] |= {"estimator": "DIPClassifier"} if row["method"] in arguments else {}
        row["config"]["arguments"] = arguments.get(row["method"], {})
    points = price_points(rows, [parts], [0.02])
    curve = {p.title: p.setting for p in points if p.kind == "default"}
    assert list(curve.values()) == [0.02, 0.05, 0.1]
    assert set(curve) == {f"DIP-EDL-{name}" for name in ("DEFAULT", "BUDGET-5", "CAUTION-10")}
    (density,) = (p for p in points if p.kind == "density")
    assert density.brier_id == budget_sweep(parts, [0.02])[0.02]["brier_id"]
    at_one = next(p for p in points if p.kind == "gamma" and p.setting == 1)
    assert at_one.brier_id == pytest.approx(gamma_sweep(parts)[1.0]["brier_id"])
    assert next(p for p in points if p.title == "DIP-EDL" and p.kind == "paper").brier_id == 0.0081
    figure = price_figure({"digits": points}, {"digits": "kmnist"})
    (ax,) = figure.axes
    assert ax.get_ylabel() == "OOD Brier, K-MNIST" and len(ax.collections) >= 9
    marks = {tuple(of.get_offsets()[0]) for of in ax.collections}
    layers = next(p for p in points if p.title == "DIP-EDL-LAYERS")
    assert (layers.brier_id, layers.brier_ood["kmnist"]) in marks  # the paper lacks it
    named = [p._replace(title="Max softmax") if p.title == "MAX-SOFTMAX" else p for p in points]
    figure = budget_figure({"a network": named}, {"kmnist": "K-MNIST"})
    (bought, paid) = figure.axes
    np.testing.assert_array_equal(bought.lines[0].get_xdata(), [2, 5, 10])
    assert len(paid.lines) == 2
