"""Tables and measures of a crossed suite against sums written out by hand over invented rows."""

import re
from statistics import mean

import numpy as np
import pytest

pytest.importorskip("pydantic")


from dipedl_bench import load_suite
from dipedl_bench.spec.suite import MeasureEntry
from dipedl_bench.tables.blocks import markdown
from dipedl_bench.tables.measures import evaluate, measures, pairs_of
from dipedl_bench.tables.pairs import choice_frame, regret, summary, values
from dipedl_bench.tables.table import bench_table

METHODS = {
    "max-softmax": "bare",
    "default": "ours",
    "energy": "baseline",
    "temperature": "baseline",
    "gaussians": "candidate",
    "neighbours": "candidate",
}
KNOWN = ("accuracy", "brier_id", "nll", "ece", "adaptive_ece", "error_auroc")
PLACES = [("a", "forest"), ("a", "net"), ("b", "net")]
OOD_OF = {"a": ["x", "y"], "b": ["z"]}


def invented(seed=0, seeds=(1, 2, 3), **better):
    """Rows of every method; `better` adds to a metric of the default."""
    rng = np.random.default_rng(seed)
    rows = []
    for dataset, classifier in PLACES:
        for number in seeds:
            for method, group in METHODS.items():
                metrics = {name: rng.uniform(0.1, 0.3) for name in KNOWN}
                for ood in OOD_OF[dataset]:
                    for name in ("auroc", "aupr", "fpr95", "brier_ood"):
                        metrics[f"{name}/{ood}"] = rng.uniform(0.4, 0.6)
                if method == "default":
                    for name in metrics:
                        metrics[name] += better.get(name.partition("/")[0], 0.0)
                rows.append(row(dataset, classifier, method, group, number, metrics))
    return rows


def row(dataset, classifier, method, group, seed, metrics, **more):
    return {
        "suite": "defaults",
        "profile": "smoke",
        "dataset": dataset,
        "classifier": classifier,
        "method": method,
        "title": method.title(),
        "group": group,
        "seed": seed,
        "config": {},
        "config_hash": f"{dataset}-{classifier}-{method}-1",
        "metrics": metrics,
        "intervals": {},
        "n": {"train": 300, "test": 100, **{f"ood/{name}": 50 for name in OOD_OF[dataset]}},
        "cpu_seconds": {"train": 6.0, "classifier": 2.0, "predict": 1.0, "score": 0.1},
        "seconds": {"train": 6.0, "classifier": 2.0, "predict": 1.0, "score": 0.1},
        "versions": {"dipedl": "0"},
        "device": "none",
        "commit": "0",
        "time": "2026-01-01T00:00:00+00:00",
        **more,
    }


def naive(rows, dataset, classifier, method, metric):
    """Mean over seeds, written out."""
    key = (dataset, classifier, method)
    return mean(
        r["metrics"][metric] for r in rows if (r["dataset"], r["classifier"], r["method"]) == key
    )


LINES = [(d, ood, c) for d, c in PLACES for ood in OOD_OF[d]]


def over_lines(rows, method, metric):
    return [naive(rows, d, c, method, f"{metric}/{ood}") for d, ood, c in LINES]


def over_known(rows, method, metric):
    return [naive(rows, d, c, method, metric) for d, c in PLACES]


def named(table, start):
    (found,) = (m for m in measures(table) if m.statement.startswith(start))
    return found


def test_cells_are_means_ci95_seeds_with_t_intervals():
    rows = invented()
    table = bench_table(rows)
    assert list(table.pairs.index) == LINES
    cell = table.by_place["a", "net", "energy"].cells["aupr/y"]
    assert cell.mean == pytest.approx(naive(rows, "a", "net", "energy", "aupr/y"))
    assert values(table.pairs, "aupr", "energy")["a", "y", "net"] == cell.mean
    half = 4.302652729911275 * np.std(cell.values, ddof=1) / np.sqrt(3)  # t, 97.5 %, 2 degrees
    np.testing.assert_allclose(cell.ci95_seeds, (cell.mean - half, cell.mean + half))
    assert list(values(table.pairs, "brier_id", "energy")) == pytest.approx(
        over_known(rows, "energy", "brier_id")
    )


def test_the_summary_is_the_naive_one():
    rows = invented()
    found = summary(bench_table(rows)).set_index("method").loc["default"]
    ours, bare = (over_lines(rows, name, "auroc") for name in ("default", "max-softmax"))
    gaps = [a - b for a, b in zip(ours, bare, strict=True)]
    assert found.lines == 5
    assert found.auroc == pytest.approx(mean(ours)) and found.auroc_bare == pytest.approx(
        mean(bare)
    )
    assert found.worst == pytest.approx(min(gaps))
    d, ood, c = LINES[int(np.argmin(gaps))]
    assert found.worst_at == f"{d} / {ood}, {c}"
    shares = [
        mean(over(rows, "default", metric)) / mean(over(rows, "max-softmax", metric))
        for over, metric in ((over_lines, "brier_ood"), (over_known, "brier_id"))
    ]
    assert found.brier_ratio == pytest.approx(shares[0])
    assert found.brier_cost == pytest.approx(shares[1] - 1)
    assert found.error_auroc == pytest.approx(mean(over_known(rows, "default", "error_auroc")))


def test_a_summary_counts_only_lines_on_which_a_method_answered():
    rows = [r for r in invented() if not (r["method"] == "energy" and r["classifier"] == "forest")]
    found = summary(bench_table(rows)).set_index("method").loc["energy"]
    assert found.lines == 3
    kept = [i for i, (_, _, c) in enumerate(LINES) if c == "net"]
    bare = over_lines(rows, "max-softmax", "auroc")
    assert found.auroc_bare == pytest.approx(mean(bare[i] for i in kept))


def test_regret_is_the_best_candidate_less_ours():
    rows = invented()
    candidates = [over_lines(rows, name, "auroc") for name in ("gaussians", "neighbours")]
    ours = over_lines(rows, "default", "auroc")
    expected = [
        max(pair) - own for pair, own in zip(zip(*candidates, strict=True), ours, strict=True)
    ]
    table = bench_table(rows)
    assert list(regret(table, table.pairs)) == pytest.approx(expected)


def test_a_choice_line_by_line_is_that_of_a_loop():
    rows, names = invented(), ["default", "gaussians", "neighbours"]
    auroc, errors = (
        [
            {name: naive(rows, d, c, name, metric.format(ood)) for name in names}
            for d, ood, c in LINES
        ]
        for metric in ("auroc/{}", "error_auroc")
    )

    def average(names, by):
        return mean(line[max(names, key=of.get)] for line, of in zip(auroc, by, strict=True))

    partner = max(names[1:], key=lambda name: average(["default", name], auroc))
    frame = choice_frame(bench_table(rows), {"networks": ["net"]}).set_index("")
    assert list(frame.index) == ["networks", "all"] and list(frame["lines"]) == ["3", "5"]
    found = frame.loc["all"].drop("lines")
    assert list(found.astype(float)) == pytest.approx(
        [
            average(["default"], auroc),
            *(average(["default", partner], by) for by in (auroc, errors)),
            *(average(names, by) for by in (auroc, errors)),
        ],
        abs=6e-4,
    )
    assert found.index[1] == f"ours or {partner.title()}, by unknown rows"


@pytest.mark.parametrize(
    ("start", "good", "bad"),
    [
        ("Mean AUROC at least .890", {"auroc": 0.45}, {"auroc": -0.3}),
        ("Mean AUROC above", {"auroc": 0.3}, {"auroc": -0.3}),
        ("AUROC never more than .10", {"auroc": 0.3}, {"auroc": -0.3}),
        ("OOD Brier never above", {"brier_ood": -0.1}, {"brier_ood": 0.5}),
        ("NLL over that of temperature scaling, the median", {"nll": -0.1}, {"nll": 0.1}),
        ("Mean AUROC within", {"auroc": 0.3}, {"auroc": -0.3}),
    ],
)
def test_measures_are_met_and_missed(start, good, bad):
    assert named(bench_table(invented(**good)), start).met is True
    assert named(bench_table(invented(**bad)), start).met is False


@pytest.mark.parametrize(
    ("start", "metric", "against", "most"),
    [
        ("Mean OOD Brier at most 60", "brier_ood", "max-softmax", 0.6),
        ("Mean OOD Brier at most .66", "brier_ood", "temperature", 0.66),
        ("Mean ID Brier", "brier_id", "max-softmax", 1.02),
        ("Mean NLL", "nll", "temperature", 1.03),
    ],
)
def test_a_mean_is_judged_by_mean_over_mean_and_shown_in_absolute_numbers(
    start, metric, against, most
):
    over = over_lines if metric == "brier_ood" else over_known
    rows = invented()
    ours, theirs = (mean(over(rows, method, metric)) for method in ("default", against))
    for gap, met in ((-1e-4, True), (1e-4, False)):
        found = named(bench_table(invented(**{metric: most * theirs - ours + gap})), start)
        assert found.met is met and found.misses == ()
        shown = [float(number) for number in re.findall(r"0\.\d+", found.found)[:2]]
        assert shown == pytest.approx([most * theirs + gap, theirs], abs=5.1e-4)


def test_timid_classifiers_are_those_that_temperature_scaling_sharpens():
    rows = [{**r, "temperature": 0.7 if r["classifier"] == "net" else 0.9} for r in invented()]
    rows = [r if r["method"] == "temperature" else {**r, "temperature": 0.1} for r in rows]
    found = bench_table(rows)
    assert [classifier for *_, classifier in pairs_of("timid", found).index] == ["net"] * 3
    assert [classifier for *_, classifier in pairs_of("others", found).index] == ["forest"] * 2
    (asked,) = (m for m in load_suite("defaults").measures if m.lines == "timid")
    ours, bare = (over_lines(rows, name, "brier_ood") for name in ("default", "max-softmax"))
    worse = sum(a > b for a, b in list(zip(ours, bare, strict=True))[2:])
    assert 0 < worse < 3
    for share, met in (((3 - worse) / 3 - 0.01, True), ((3 - worse) / 3 + 0.01, False)):
        judged = evaluate(asked.model_copy(update={"good_share": share}), found)
        assert judged.met is met and len(judged.misses) == worse


def test_data_sets_that_were_never_looked_at_are_not_compared_with_an_earlier_default():
    named_as = {"a": "digits-8", "b": "titanic-3"}
    rows = [{**r, "dataset": named_as[r["dataset"]]} for r in invented()]
    found = bench_table(rows)
    assert set(pairs_of("earlier", found).index.unique("dataset")) == {"digits-8"}
    forest = mean(over_lines(invented(), "default", "auroc")[:2])
    for before, met in ((forest - 0.01, True), (forest + 0.01, False)):
        entry = MeasureEntry(
            statement="", what="earlier", earlier={"forest": before}, least=0, found="{min:.2f}"
        )
        assert evaluate(entry, found).met is met
        assert evaluate(entry, found).found.startswith(f"{forest - before:.2f};")


def test_a_baseline_is_compared_by_each_of_its_rankings():
    rows, start = invented(auroc=0.2), "Mean AUROC above"
    other = [
        {**r, "method": "energy:total", "title": "Energy by total", "config_hash": "total"}
        | {"metrics": {name: 0.9 for name in r["metrics"]}}
        for r in rows
        if r["method"] == "energy"
    ]
    found = named(bench_table(rows + other), start)
    assert named(bench_table(rows), start).met is True and found.met is False
    assert re.search(r"Energy by total: 0\.\d{3} against 0\.900 on 5 lines", found.found)


def test_without_its_rows_a_measure_is_not_run():
    rows = [r for r in invented() if r["method"] in ("max-softmax", "energy")]
    assert {m.met for m in measures(bench_table(rows))} == {None}


def test_a_perfect_baseline_divides_nothing_by_zero():
    rows = invented()
    for r in rows:
        if r["method"] in ("max-softmax", "temperature"):
            r["metrics"] = {**r["metrics"], "brier_id": 0.0, "nll": 0.0}
    found = named(bench_table(rows), "Mean NLL")
    assert found.met is False and "inf times" in found.found


def test_refusals_are_shown_and_count_nowhere():
    rows = [r for r in invented() if not (r["method"] == "energy" and r["classifier"] == "forest")]
    no = row("a", "forest", "energy", "baseline", 1, {}, refused="it has no | logits")
    del no["cpu_seconds"], no["n"]
    table = bench_table([*rows, no])
    refused = [line for line in table.lines if line.refused]
    assert [(line.dataset, line.classifier, line.name) for line in refused] == [
        ("a", "forest", "energy")
    ]
    assert refused[0].cells == {} and refused[0].refused == "it has no | logits"
    assert table.pairs.equals(bench_table(rows).pairs)
    assert [line for line in table.lines if not line.refused] == list(bench_table(rows).lines)
    text = markdown(table)
    assert "| a, forest | energy | it has no \\| logits |" in text
    assert "| refused |" in text


def test_means_are_over_the_seeds_that_all_methods_of_a_place_share():
    rows = invented()
    fewer = [r for r in rows if r["seed"] == 2 or r["method"] != "energy" or r["dataset"] == "b"]
    lines = {(ln.dataset, ln.classifier, ln.name): ln.seeds for ln in bench_table(fewer).lines}
    assert lines["a", "net", "default"] == lines["a", "net", "energy"] == (2,)
    assert lines["b", "net", "default"] == (1, 2, 3)
    # with none in common, each has its own
    apart = [r for r in rows if (r["seed"] == 2) == (r["method"] == "energy")]
    assert {ln.seeds for ln in bench_table(apart).lines} == {(1, 3), (2,)}
