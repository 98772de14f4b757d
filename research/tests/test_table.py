"""The table against numbers worked out by hand."""

import json
import math

import numpy as np
import pytest
from synthetic_store import write_synthetic_store

from dipedl_bench import load_rows
from dipedl_bench.results.paper import Published
from dipedl_bench.results.scores import RANKED
from dipedl_bench.tables.table import Estimate, bench_table, estimate, keep_latest, paper_row


def row(method="dip-edl", seed=10, digest="a", profile="cpu", **metrics):
    values = {"accuracy": 0.99, "aupr/kmnist": 0.9, **metrics}
    return {
        "suite": "mnist",
        "profile": profile,
        "method": method,
        "title": method.upper(),
        "seed": seed,
        "config_hash": digest,
        "metrics": values,
        "intervals": {name: [v - 0.01, v + 0.01 * seed / 10] for name, v in values.items()},
        "baselines": {"aupr/kmnist": 0.5},
        "n": {"validation": 5, "test": 10, "ood/kmnist": 10},
        "seconds": {"train": 10.0 * seed, "score": 1.0},
        "cpu_seconds": {"train": 20.0, "score": 2.0},
        "peak_memory_mb": 100.0 + seed,
        "forward_passes": 1,
        "n_parameters": 7,
    }


def test_t_interval_by_the_book():
    """Student's 97.5 % point with 3 degrees of freedom is 3.182."""
    values = [0.1, 0.2, 0.4, 0.5]
    low, high = estimate(values).ci95_seeds
    half = 3.182446 * np.std(values, ddof=1) / 2
    assert (low, high) == pytest.approx((0.3 - half, 0.3 + half), abs=1e-6)
    assert estimate([0.1]).ci95_seeds is None
    assert estimate([0.1, math.inf]).ci95_seeds is None


@pytest.mark.parametrize(
    ("ours", "sd", "paper", "differs"),
    [
        (0.9963, 0.0003, Published(0.9953, 0.0003), True),  # 2 sd of the difference: .00085
        (0.9961, 0.0003, Published(0.9953, 0.0003), False),
        (0.9998, 0.0, Published(0.9997, 0.0), True),
        (0.99974, 0.0, Published(0.9997, 0.0), False),  # it may have been rounded
        (0.9944, 0.0, Published(0.994, 0.0, 3), False),
        (0.9946, 0.0, Published(0.994, 0.0, 3), True),
        (0.5, 0.0, Published(0.9, None), None),
        (0.5, 0.0, None, None),
    ],
)
def test_more_than_two_standard_deviations(ours, sd, paper, differs):
    assert Estimate(ours, sd, (ours,), paper=paper).differs is differs


def test_only_the_latest_configuration_counts():
    rows = [
        row(seed=10, digest="old", accuracy=0.1),
        row(seed=20, digest="old", accuracy=0.1),
        row(seed=20, digest="new"),
        row(seed=10, digest="new"),
        row("edl", seed=10, digest="x"),
    ]
    assert [(r["method"], r["seed"], r["config_hash"]) for r in keep_latest(rows)] == [
        ("dip-edl", 10, "new"),
        ("dip-edl", 20, "new"),
        ("edl", 10, "x"),
    ]


def test_order_is_the_paper_s_then_the_suite_s_then_as_run():
    names = ["mine", "energy", "dip-edl-lenet", "dip-edl", "mc-dropout", "edl-published", "edl"]
    table = bench_table([row(name) for name in [*names, "entropy", "another"]])
    ordered = "edl edl-published mc-dropout dip-edl dip-edl-lenet entropy energy mine another"
    assert [line.name for line in table.lines] == ordered.split()


def test_names_of_the_paper():
    pairs = {
        "edl": "EDL",
        "edl-as-published": "EDL",
        "r-edl": "R-EDL",
        "re-edl": "Re-EDL",
        "redl": "R-EDL",
        "mc_dropout": "MC Dropout",
        "deep-ensemble": "Deep Ensemble",
        "dip-edl-lenet5": "DIP-EDL",
        "max-softmax": None,
        "dip": None,
    }
    assert {name: paper_row("mnist", name) for name in pairs} == pairs
    assert paper_row("no-such-suite", "edl") is None


def test_costs():
    resumed = {**row(seed=50), "seconds": {"train": 9e9, "score": 9e9}, "own": {"resumed": True}}
    cost = bench_table([row(seed=10), row(seed=30), resumed]).lines[0].cost
    assert (cost["train_seconds"], cost["score_seconds"]) == (200.0, 1.0)
    assert (cost["train_cpu_seconds"], cost["cpu_seconds"]) == (20.0, 22.0)
    assert cost["peak_memory_mb"] == 130.0
    assert (cost["forward_passes"], cost["n_parameters"]) == (1, 7)


def test_json_holds_every_cell(tmp_path):
    write_synthetic_store(tmp_path, profile="cpu")
    table = bench_table(load_rows("mnist", "cpu", tmp_path))
    data = json.loads(json.dumps(table.as_json(), allow_nan=False))
    assert [m["method"] for m in data["methods"]] == ["edl", "dip-edl", "max-softmax"]
    rows = load_rows("mnist", "cpu", tmp_path)
    for method in data["methods"]:
        of_method = [r for r in rows if r["method"] == method["method"]]
        assert method["seeds"] == [10, 20]
        means = {f"{kind}/{group}" for kind in RANKED for group in table.groups}
        assert set(method["cells"]) == {*of_method[0]["metrics"], "worst_recall", *means}
        near = [
            (r["metrics"]["fpr95/kmnist"] + r["metrics"]["fpr95/omniglot_inverted"]) / 2
            for r in of_method
        ]
        assert method["cells"]["fpr95/near_ood"]["values"] == pytest.approx(near)
        assert method["cells"]["fpr95/far_ood"]["mean"] == pytest.approx(
            method["cells"]["fpr95/omniglot"]["mean"]
        )
        method["cells"] = {n: of for n, of in method["cells"].items() if n not in means}
        worst = method["cells"].pop("worst_recall")
        recalls = [[r["metrics"][f"recall_{i}"] for i in range(10)] for r in of_method]
        assert worst["values"] == [min(r) for r in recalls] and worst["ci95_images"] is None
        for name, cell in method["cells"].items():
            values = [r["metrics"][name] for r in of_method]
            assert cell["values"] == values and cell["n"] == 2
            assert cell["mean"] == pytest.approx(np.mean(values))
            assert cell["sd"] == pytest.approx(np.std(values))
    dip = data["methods"][1]["cells"]
    assert dip["accuracy"]["difference"] == pytest.approx(dip["accuracy"]["mean"] - 0.9953)
    assert dip["accuracy"]["paper"] == {"mean": 0.9953, "sd": 0.0003, "decimals": 4}
    assert data["methods"][2]["cells"]["accuracy"]["paper"] is None
    kinds = ("auroc", "caught_5", "aupr", "brier_ood")
    assert table.columns()["kmnist"] == tuple(f"{kind}/kmnist" for kind in kinds)
    every = {n for extra in (False, True) for names in table.columns(extra).values() for n in names}
    of_groups = {n for n in dip if n.endswith(("/near_ood", "/far_ood"))}
    assert every == {n for n in dip if not n.startswith("recall_")} - of_groups | {"worst_recall"}
