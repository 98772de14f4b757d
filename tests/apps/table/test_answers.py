"""Answers from the shell are those of the library; explanation, checks and report say them."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

from weekly import sample_of, sample_of_rows

pytest.importorskip("pyarrow")

import dipedl
from dipedl.apps.table import evaluate, fit, page, reading
from dipedl.apps.table.columns import as_inputs
from dipedl.apps.table.fit import MODELS, FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.score import explain_rows, start_monitor
from dipedl.apps.table.table_model import read_model, save_model
from passengers import passengers


@pytest.fixture(scope="module")
def by_hand(kept):
    """The classifier in the model's file and the new rows as pandas reads them."""
    new = pd.read_csv(kept / "new.csv")
    X = new[["deck", "sex", "age", "fare", "port"]].astype({"sex": "category", "port": "category"})
    return dipedl.load(kept / "model.dipedl"), X.astype({"deck": float})


def test_answers_are_those_of_the_library(run, kept, by_hand, tmp_path):
    clf, X = by_hand
    out = tmp_path / "a.parquet"
    done = run("score", kept / "model.dipedl", kept / "new.csv", "--columns", "name", "--out", out)
    assert done.exit_code == 0, done.output
    found = pd.read_parquet(out)
    assert found["row"].tolist() == list(range(1, 61))
    assert found["name"].tolist() == pd.read_csv(kept / "new.csv")["name"].tolist()
    assert (found["label"] == clf.predict(X)).all()
    np.testing.assert_array_equal(found[["p_no", "p_yes"]], clf.predict_proba(X))
    np.testing.assert_array_equal(found["vacuity"], clf.uncertainty(X))
    np.testing.assert_array_equal(found["p_value"], clf.p_value(X))
    np.testing.assert_array_equal(found["flagged"], clf.predict_ood(X) == -1)
    sets = ["|".join(np.array(["no", "yes"])[row]) for row in clf.predict_set(X, 0.9)]
    assert found["set"].tolist() == sets
    assert ((found["reason"] != "") == found["flagged"]).all() and found["flagged"].any()


def test_sets_by_class_are_those_of_the_library(run, kept, by_hand, tmp_path):
    (clf, X), out = by_hand, tmp_path / "a.parquet"
    args = ("--by-class", "--coverage", "0.8", "--out", out)
    assert run("score", kept / "model.dipedl", kept / "new.csv", *args).exit_code == 0
    inside = clf.predict_set(X, 0.8, by_class=True)
    sets = ["|".join(np.array(["no", "yes"])[row]) for row in inside]
    assert pd.read_parquet(out)["set"].tolist() == sets
    assert (inside != clf.predict_set(X, 0.8)).any()


def test_decisions_by_cost_are_those_of_the_library(run, kept, by_hand, tmp_path):
    (clf, X), out = by_hand, tmp_path / "a.parquet"
    rows, prices = ["true,yes,no", "yes,0,4", "no,1.5,0"], tmp_path / "costs.csv"
    prices.write_text("\n".join(rows))
    numbers = ("--cost-reject", "0.8", "--cost-unknown", "9", "--unknown-share", "0.02")
    args = (kept / "model.dipedl", kept / "new.csv", "--out", out, "--json")
    done = run("score", *args, *numbers, "--costs", prices)
    found, told = pd.read_parquet(out), json.loads(done.stdout)
    options = {"cost_reject": 0.8, "cost_unknown": 9, "unknown": 0.02}
    decision = clf.decide(X, **options, costs=[[0, 1.5], [4, 0]])
    assert found["decision"].tolist() == decision.fill("").tolist()
    assert 0 < (found["decision"] != "").sum() < len(X)
    np.testing.assert_array_equal(found["cost"], decision.costs)
    assert told["decided"] == decision.accepted.sum()
    assert told["held_out_cost"] == decision.held_out_cost
    plain = run("score", *args[:-1], *numbers, "--cost-error", "5")
    decision = clf.decide(X, **options, cost_error=5)
    assert f"Decided:  {decision.accepted.sum()} rows" in plain.stdout
    assert f"mean cost of {decision.held_out_cost:.4g}" in plain.stdout


COSTS = {
    "no cost of no answer": ((("--cost-error", "5"),), "", "--cost-error needs --cost-reject"),
    "no error": ((("--cost-reject", "1"),), "", "--cost-error and --costs"),
    "both": (
        (("--cost-reject", "1"), ("--cost-error", "5"), ("--costs",)),
        "true,yes,no\nyes,0,1\nno,1,0",
        "--cost-error and --costs",
    ),
    "below 0": ((("--cost-reject", "1"), ("--cost-error", "-5")), "", "--cost-error must be"),
    "NaN": ((("--cost-reject", "nan"), ("--cost-error", "5")), "", "--cost-reject must be"),
    "a share of 1": (
        (("--cost-reject", "1"), ("--cost-error", "5"), ("--unknown-share", "1")),
        "",
        "--unknown-share must be",
    ),
    "a class less": ((("--cost-reject", "1"), ("--costs",)), "true,yes\nyes,0\nno,1", "column"),
    "a line less": ((("--cost-reject", "1"), ("--costs",)), "true,yes,no\nyes,0,1", "a line"),
    "another class": (
        (("--cost-reject", "1"), ("--costs",)),
        "true,yes,no\nyes,0,1\nmaybe,1,0",
        "maybe",
    ),
    "a word": (
        (("--cost-reject", "1"), ("--costs",)),
        "true,yes,no\nyes,0,much\nno,1,0",
        "no number",
    ),
    "a negative cost": (
        (("--cost-reject", "1"), ("--costs",)),
        "true,yes,no\nyes,0,-1\nno,1,0",
        ">= 0",
    ),
}


@pytest.mark.parametrize("given", COSTS.values(), ids=COSTS)
def test_costs_that_cannot_be_used_are_named(run, kept, tmp_path, given):
    options, table, message = given
    prices, out = tmp_path / "costs.csv", tmp_path / "a.csv"
    prices.write_text(table)
    typed = [part for option in options for part in (*option, *[prices][: len(option) == 1])]
    done = run("score", kept / "model.dipedl", kept / "new.csv", "--out", out, *typed)
    assert done.exit_code == 2 or done.exit_code == 1, done.output
    assert message in done.stderr and "Traceback" not in done.stderr and not out.exists()


def test_csv_holds_no_formulas_and_parquet_is_exact(run, kept, tmp_path):
    name, data = "=a", pd.read_csv(kept / "new.csv")[:4]
    data["depth"], data[name] = [-1, -2.5, 3, -4e-5], ["=1+1", "@x", "-7", "plain"]
    data.to_csv(tmp_path / "new.csv", index=False)
    outs = [tmp_path / "a.csv", tmp_path / "a.parquet"]
    for out in outs:
        options = ("--columns", f"depth,{name}", "--out", out)
        assert run("score", kept / "model.dipedl", tmp_path / "new.csv", *options).exit_code == 0
    found = pd.read_csv(outs[0], dtype=str)
    assert found["'=a"].tolist() == ["'=1+1", "'@x", "-7", "plain"]
    assert found["depth"].tolist() == ["-1.0", "-2.5", "3.0", "-4e-05"]
    assert pd.read_parquet(outs[1])[name].tolist() == data[name].tolist()


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """A table with dates, texts, truths and gaps, and the model that the shell made of it."""
    folder = tmp_path_factory.mktemp("dated")
    days = pd.date_range("2026-01-01", periods=240).strftime("%d.%m.%Y")
    frame = passengers().assign(day=days, late=["yes", "no"] * 120, note=["", "x", "NA"] * 80)
    frame.to_csv(folder / "data.csv", index=False)
    request = fit.FitRequest("survived", model="linear", drop=["passenger"])
    save_model(fit.fit_table(open_table(folder / "data.csv"), request).model, folder / "m.dipedl")
    return folder


@pytest.fixture(scope="module")
def dated_answers(dated, run):
    """Answers to all rows, and the cards of the first three, from the shell."""
    out = dated / "answers.parquet"
    run("score", dated / "m.dipedl", dated / "data.csv", "--out", out, "--reasons", "all")
    shown = run("explain", dated / "m.dipedl", dated / "data.csv", "--rows", 3, "--details").stdout
    return pd.read_parquet(out), shown


@pytest.mark.parametrize(
    "read", sample_of(["typed", "texts", "other order", "polars", "parquet"], "texts", "polars")
)
def test_a_loaded_model_takes_the_table_as_it_is(read, dated, dated_answers, tmp_path):
    (found, shown), clf = dated_answers, dipedl.load(dated / "m.dipedl")
    kinds = str if read == "texts" else None
    raw = pd.read_csv(dated / "data.csv", dtype=kinds, keep_default_na=False, na_values=[""])
    if read == "other order":
        raw = raw[raw.columns[::-1]]
    elif read == "polars":
        raw = pytest.importorskip("polars").read_csv(dated / "data.csv")
    elif read == "parquet":
        raw = raw.assign(day=pd.to_datetime(raw["day"], format="%d.%m.%Y"), deck=raw["deck"] * 1.0)
    np.testing.assert_array_equal(clf.predict_proba(raw)[:, 1], found["p_yes"])
    np.testing.assert_array_equal(clf.predict_ood(raw) == -1, found["flagged"])
    answers = clf.answers(raw[:60], reasons="all")
    assert answers.reasons.tolist() == found["reason"][:60].tolist()
    np.testing.assert_array_equal(answers.p_values, found["p_value"][:60])
    cards = clf.explain(raw[:3])
    assert shown == "".join(f"Row {i}\n{card}\n\n" for i, card in enumerate(cards, start=1))
    clf.save(tmp_path / "again.dipedl")
    again = dipedl.load(tmp_path / "again.dipedl").predict_proba(raw)
    np.testing.assert_array_equal(again, clf.predict_proba(raw))


def test_a_loaded_model_takes_rows_in_lists_as_in_a_table(dated):
    clf, raw = dipedl.load(dated / "m.dipedl"), pd.read_csv(dated / "data.csv")
    used = json.loads(clf.table_)["columns"]
    rows = raw[[column["name"] for column in used if column["kind"] != "text"]]
    assert rows.isna().any(axis=None)
    for form in (rows.to_numpy(), rows.to_numpy().tolist(), rows.to_numpy().astype(str)):
        np.testing.assert_array_equal(clf.predict_proba(form), clf.predict_proba(raw))


def test_a_loaded_model_names_what_it_cannot_read(dated):
    clf, raw = dipedl.load(dated / "m.dipedl"), pd.read_csv(dated / "data.csv")
    with pytest.raises(ValueError, match="row 3, column 'age': 'old'"):
        clf.predict_proba(raw.astype({"age": object}).replace({"age": {raw["age"][3]: "old"}}))
    with pytest.raises(ValueError, match="'sex'"):
        clf.predict(raw.drop(columns="sex"))
    with pytest.raises(ValueError, match="column 'age'"):
        clf.predict(pd.concat([raw, raw[["age"]]], axis=1))
    for row in (raw.iloc[0], dict(raw.iloc[0]), [dict(raw.iloc[0])]):
        with pytest.raises(ValueError, match="DataFrame"):
            clf.predict(row)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_monitor_in_python_watches_the_columns_of_a_loaded_model(fresh, dated):
    clf = dipedl.load(dated / "m.dipedl")
    raw = pd.read_csv(dated / "data.csv", keep_default_na=False, na_values=[""])
    later = raw.assign(day="01.07.2027")
    monitor = dipedl.DriftMonitor(window=240).fit(clf, *[raw] * fresh)
    with pytest.raises(ValueError, match="row 0, column 'age'"):
        monitor.update(clf, raw.assign(age="old"))
    report = monitor.update(clf, later)
    assert {name for name, _ in report.window.changed} == {"day.month", "day.weekday"}
    shell = start_monitor(read_model(dated / "m.dipedl"), None, 0.01, 240)
    assert fresh or report == shell.update(clf, later)


def test_a_loaded_model_that_is_fitted_anew_has_left_its_table(dated):
    clf = dipedl.load(dated / "m.dipedl").set_params(estimator=None)
    X = np.random.default_rng(0).normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    assert not hasattr(clf.fit(X, y), "table_")
    np.testing.assert_array_equal(clf.predict_proba(X), clone(clf).fit(X, y).predict_proba(X))


def outside(values, value):
    """Whether a value is one that the rows of the fit seldom had."""
    if value is None:
        return values.isna().mean() < 0.05
    if values.dtype.kind not in "if":
        return (values == value).mean() < min(0.05, 1 / values.nunique())
    return not values.quantile(0.05) <= value <= values.quantile(0.95)


def test_reasons_are_those_of_the_complete_cards(run, kept, by_hand, tmp_path):
    clf, X = by_hand
    out = tmp_path / "a.parquet"
    run("score", kept / "model.dipedl", kept / "new.csv", "--reasons", "all", "--out", out)
    found = pd.read_parquet(out)["reason"]
    cards, rarest, train = clf.explain(X), set(), pd.read_csv(kept / "passengers.csv")
    for card, said in zip(cards, found, strict=True):
        gaussians = [part for part in card.parts if part["kind"] == "gaussian"]
        part = gaussians[int(np.argmin([part["normal_score"] for part in gaussians]))]
        beyond = {e["name"]: e["contribution"] - e["expected"] for e in part["features"]}
        least = max(0.1 * max(beyond.values()), 1e-300)
        far = [e for e in part["features"] if beyond[e["name"]] >= least]
        unusual = [e["name"] for e in far if outside(train[e["name"]], e["value"])][:2]
        names = [re.match(r"(.+?) (=|is missing|0)", one)[1] for one in said.split("; ")]
        if unusual:
            assert names == unusual
            rarest.add(part["part"])
        else:
            assert names[0].startswith(("unusual beside the other columns", "p-value"))
    assert len(rarest) > 1, "one part is the rarest of all rows: the choice is not tested"


def test_any_pieces_give_the_same_answers(run, kept, tmp_path, monkeypatch):
    outs = [tmp_path / "whole.csv", tmp_path / "pieces.csv"]
    for out, block in zip(outs, (1 << 22, 500), strict=True):
        monkeypatch.setattr(reading, "_BLOCK", block)
        run("score", kept / "model.dipedl", kept / "new.csv", "--out", out)
    whole, pieces = map(pd.read_csv, outs)
    rounded = whole.select_dtypes("float").columns.drop("p_value")
    # How a product is rounded depends on the rows beside it, on some kinds of CPU.
    pd.testing.assert_frame_equal(whole[rounded], pieces[rounded], rtol=1e-12, atol=0)
    pd.testing.assert_frame_equal(whole.drop(columns=rounded), pieces.drop(columns=rounded))


def test_columns_come_by_name_and_others_are_not_looked_at(run, kept, tmp_path):
    new = pd.read_csv(kept / "new.csv")
    new[new.columns[::-1]].assign(more=1).to_csv(tmp_path / "turned.csv", index=False)
    for data, out in ((kept / "new.csv", "a.csv"), (tmp_path / "turned.csv", "b.csv")):
        assert run("score", kept / "model.dipedl", data, "--out", tmp_path / out).exit_code == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()


def test_a_category_that_was_never_seen_is_answered_and_told(run, kept, tmp_path):
    passengers(5, seed=2).assign(port="Z").to_csv(tmp_path / "new.csv", index=False)
    with open(tmp_path / "new.csv", "a") as stream:
        stream.write("too,few\n")
    done = run("explain", kept / "model.dipedl", tmp_path / "new.csv", "--rows", 2)
    assert done.exit_code == 0 and done.stdout.count("never in the training data: port = 'Z'") == 2


def test_a_reason_names_what_is_far_and_nothing_else(run, kept, tmp_path):
    passengers(5, seed=2).assign(fare=30_900).to_csv(tmp_path / "new.csv", index=False)
    run("score", kept / "model.dipedl", tmp_path / "new.csv", "--out", tmp_path / "a.csv")
    reasons = pd.read_csv(tmp_path / "a.csv")["reason"]
    assert reasons.str.fullmatch(r"fare = 30900 \(typical [\d.]+ to [\d.]+\)").all()


def test_explain_gives_the_card_of_the_library(run, kept, by_hand, tmp_path):
    clf, X = by_hand
    row = pd.read_csv(kept / "new.csv").iloc[0].to_dict()
    (tmp_path / "row.json").write_text(json.dumps(row))
    done = run("explain", kept / "model.dipedl", tmp_path / "row.json")
    card = clf.explain(X[:1])[0]
    assert done.stdout == f"Row 1\n{card.summary()}\n\n" and len(done.stdout.splitlines()) == 5
    assert run("explain", kept / "model.dipedl", json.dumps(row)).stdout == done.stdout
    done = run("explain", kept / "model.dipedl", tmp_path / "row.json", "--details")
    assert str(card) in done.stdout
    done = run("explain", kept / "model.dipedl", tmp_path / "row.json", "--json")
    assert json.loads(done.stdout) == [{"row": 1, **card.to_dict()}]


def test_a_row_is_explained_by_its_number_in_the_answers(run, kept, tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "_BLOCK", 500)
    new = passengers(60, seed=1).astype({"age": object})
    new.loc[10, "age"] = "unknown"
    new.to_csv(tmp_path / "new.csv", index=False)
    run("score", kept / "model.dipedl", tmp_path / "new.csv", "--out", tmp_path / "a.csv")
    answers = pd.read_csv(tmp_path / "a.csv").set_index("row")
    for row in (1, 12, 60):
        done = run("explain", kept / "model.dipedl", tmp_path / "new.csv", "--row", row, "--json")
        (card,) = json.loads(done.stdout)
        assert done.exit_code == 0 and card["row"] == row
        assert card["p_value"] == answers["p_value"][row]
    refused = run("explain", kept / "model.dipedl", tmp_path / "new.csv", "--row", 11)
    assert refused.exit_code == 3 and "row 11" in refused.output and "unknown" in refused.output
    beyond = run("explain", kept / "model.dipedl", tmp_path / "new.csv", "--row", 61)
    assert beyond.exit_code == 1 and "rows 1 to 60" in beyond.output


@pytest.mark.parametrize("timed", [None, "day"])
def test_neighbours_are_named_by_their_rows_in_the_file(timed, tmp_path):
    made = passengers(80).astype({"survived": object})
    made["day"] = np.random.default_rng(0).permutation(80)
    made.loc[[3, 4, 40], "survived"] = None
    made.to_csv(tmp_path / "data.csv", index=False)
    table = open_table(tmp_path / "data.csv")
    learned = fit_table(table, FitRequest("survived", "linear", ["passenger"], time_column=timed))
    cards, _ = explain_rows(learned.model, table, 80, top=1)
    nearest = [
        (row, part["neighbours"][0])
        for row, _, card in cards
        for part in card.parts
        if part["kind"] == "neighbours" and row not in (4, 5, 41)
    ]
    assert len(nearest) >= 77
    assert all(near["row"] == row and near["distance"] < 1e-6 for row, near in nearest)


@pytest.mark.parametrize(
    "command",
    sample_of(["score", "explain", "inspect", "check", "report"], "score", "explain", "inspect"),
)
def test_every_command_is_quiet_if_asked(command, run, kept, tmp_path):
    given = {
        "inspect": [kept / "model.dipedl"],
        "check": [kept / "passengers.csv", "--target", "survived"],
    }.get(command, [kept / "model.dipedl", kept / "new.csv"])
    ending = {"score": "csv", "report": "html"}.get(command)
    out = ["--out", tmp_path / f"a.{ending}"] if ending else []
    quiet, told = (run(command, *given, *out, *option) for option in (["-q"], []))
    assert (quiet.stderr, quiet.exit_code) == ("", told.exit_code)
    assert quiet.stdout == told.stdout


def test_a_row_far_from_the_rest_is_named_as_in_its_file(tmp_path):
    made = passengers(60)
    made.loc[[2, 40], ["survived", "fare"]] = [[None, 50.0], ["no", 1e7]]
    made.to_csv(tmp_path / "far.csv", index=False)
    learned = fit_table(
        open_table(tmp_path / "far.csv"), FitRequest("survived", "linear", ["passenger"])
    )
    (far,) = [note for note in learned.notes if "far from the rest" in note]
    assert "rows [41]" in far and "such as 1e+07 in row 41, column 'fare'" in far


def test_inspect_builds_nothing(run, kept, monkeypatch):
    from dipedl.io import model_file

    monkeypatch.setattr(model_file, "Decoder", None)
    done = run("inspect", kept / "model.dipedl", "--json")
    found = json.loads(done.stdout)
    assert found["classes"] == ["no", "yes"] and found["table"]["target"] == "survived"
    assert found["table"]["facts"]["learned"] == 240 == found["n"]
    assert [c["kind"] for c in found["table"]["columns"]][:3] == ["numeric", "text", "category"]
    assert "passengers.csv" in run("inspect", kept / "model.dipedl").stdout


def test_the_file_of_a_module_is_inspected_too(run, tmp_path):
    torch = pytest.importorskip("torch")
    from dipedl.pretrained import DIPModule

    torch.manual_seed(0)
    X, y = torch.randn(60, 3), torch.arange(60) % 2
    module = DIPModule(torch.nn.Sequential(torch.nn.Linear(3, 2)).eval(), score="density")
    module.fit_density([(X, y)], calibration=[(X + 1, y)]).save(tmp_path / "module")
    found = json.loads(run("inspect", tmp_path / "module", "--json").stdout)
    assert (found["type"], found["n"], found["table"]) == ("DIPModule", 60, None)


def test_fit_tells_what_it_learned(run, kept, tmp_path):
    out = tmp_path / "m.dipedl"
    arguments = ["--target", "survived", "--model", "linear", "--out", out, "--json", "--verbose"]
    done = run("fit", kept / "passengers.csv", *arguments, "--time-column", "passenger")
    assert done.exit_code == 0, done.output
    told, model = json.loads(done.stdout), read_model(out)
    assert "[dipedl] classifier fitted on 240 rows" in done.stderr
    held, clf = model.classifier.evidence_.held_out_, model.classifier
    right = clf.held_out_dirichlet().mean.argmax(axis=1) == held.labels
    assert told["accuracy"] == right.mean() and told["learned"] == 240
    # The later four fifths in turn, each by a model of the rows before it.
    assert told["held_out_rows"] == 192
    assert told["columns"]["name"] == "text" and "passenger" not in told["columns"]
    assert any("Left out as text: name" in note for note in told["notes"])
    assert (model.classifier.predict_proba is not None) and model.target == "survived"


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_every_model_learns_text_and_gaps_and_loads_by_itself(name, kept, tmp_path):
    table = open_table(kept / "passengers.csv")
    learned = fit_table(table, FitRequest("survived", model=name, drop=["passenger"]))
    if name != "mlp":  # of so few rows a network learns no more than the larger class, or less
        assert learned.numbers["accuracy"] > learned.numbers["share_of_largest_class"]
    assert learned.model.facts["model_title"] in str(MODELS[name])
    learned.model.classifier.save(tmp_path / "model.dipedl")
    piece = next(table.pieces())
    rows, *_ = as_inputs(learned.model.columns, piece.frame, piece.rows)
    same = dipedl.load(tmp_path / "model.dipedl")
    assert (same.predict_proba(rows) == learned.model.classifier.predict_proba(rows)).all()


def test_a_classifier_in_a_file_is_fitted_again(kept, tmp_path):
    import skops.io
    from sklearn.dummy import DummyClassifier
    from sklearn.ensemble import StackingClassifier

    prior = DummyClassifier(strategy="prior")
    order = FitRequest("survived", model=str(tmp_path / "m.skops"), drop=["passenger"])
    # A stack has probabilities only after its fit.
    skops.io.dump(StackingClassifier([("prior", prior)]), tmp_path / "m.skops")
    learned = fit_table(open_table(kept / "passengers.csv"), order)
    assert learned.numbers["accuracy"] == learned.numbers["share_of_largest_class"]


def test_check_finds_what_is_wrong(run, tmp_path):
    made = passengers(300)
    made = made.assign(
        leak=made["survived"].map({"yes": "a", "no": "b"}), fixed=1, twin=made["age"]
    )
    made = pd.concat([made, made.iloc[:5]], ignore_index=True).assign(day="2026-11-22")
    torn = made.loc[2:3, "survived"].map({"yes": "no", "no": "yes"})
    made.loc[302:303, "survived"] = torn.to_numpy()
    made.to_csv(tmp_path / "data.csv", index=False)
    made.iloc[:7].to_csv(tmp_path / "test.csv", index=False)
    arguments = ["--target", "survived", "--test", tmp_path / "test.csv"]
    done = run("check", tmp_path / "data.csv", *arguments, "--json")
    assert done.exit_code == 3
    findings = json.loads(done.stdout)["findings"]
    found = {f["code"]: f for f in findings}
    assert found["leak"]["numbers"]["column"] == "leak"
    assert found["constant_column"]["text"] == (
        "2 columns have one value in all rows: fixed ('1'), day ('2026-11-22')."
    )
    assert found["equal_columns"]["text"] == "twin equals age."
    assert found["duplicates"]["numbers"]["rows"] == 5
    assert found["conflicting_copies"]["numbers"]["rows"] == 2
    assert found["overlap"]["numbers"]["rows"] == 7
    assert {"text_columns", "dates", "classes"} <= set(found)


def patients(n_patients=60, rows=8, seed=0):
    """Rows of patients, each of one age, who shift what is measured; and a year, which does not."""
    rng = np.random.default_rng(seed)
    of = rng.permutation(np.repeat(np.arange(n_patients), rows))
    shift, ages = rng.normal(size=(n_patients, 4)), rng.integers(20, 60, n_patients)
    ill = rng.random(len(of)) < 0.4
    made = pd.DataFrame(shift[of] + rng.normal(size=(len(of), 4)) + 2 * ill[:, None])
    made = made.add_prefix("lab").assign(age=ages[of], year=rng.integers(1990, 2020, len(of)))
    return made.assign(patient=[f"P{i}" for i in of], ill=np.where(ill, "yes", "no"))


def test_a_column_of_patients_is_named_and_held_out_as_a_whole(run, tmp_path):
    patients().to_csv(tmp_path / "data.csv", index=False)
    done = run("check", tmp_path / "data.csv", "--target", "ill", "--json")
    findings = json.loads(done.stdout)["findings"]
    (found,) = [f for f in findings if f["code"] == "group_column"]
    assert found["numbers"] == {"column": "patient", "groups": 60}
    assert "--group-column patient" in found["remedy"]
    out = tmp_path / "m.dipedl"
    arguments = ["--target", "ill", "--model", "linear", "--group-column", "patient", "--out", out]
    done = run("fit", tmp_path / "data.csv", *arguments, "--json")
    assert done.exit_code == 0 and "patient" not in json.loads(done.stdout)["columns"]
    model = read_model(out)
    assert "by groups of 480 inputs" in model.classifier.evidence_.held_out_.source
    assert model.facts["group_column"] == "patient"
    scored = run("score", out, tmp_path / "data.csv", "--out", tmp_path / "answers.csv")
    assert scored.exit_code == 0, scored.output


@pytest.fixture(scope="module")
def boats(tmp_path_factory):
    """A table of four kinds of boats: one far from all others, one of five rows."""
    rng = np.random.default_rng(0)
    kind = np.repeat(["canoe", "dinghy", "tanker", "raft"], [60, 60, 60, 5])
    length = rng.normal(np.repeat([5.0, 6.0, 300.0, 4.0], [60, 60, 60, 5]), 0.7)
    path = tmp_path_factory.mktemp("boats") / "boats.csv"
    table = pd.DataFrame({"kind": kind, "length": length, "width": rng.normal(2, 0.3, len(kind))})
    table.to_csv(path, index=False)
    return path


def test_check_says_what_a_model_would_catch(run, boats):
    arguments = ["--target", "kind", "--unknown", "--model", "linear"]
    done = run("check", boats, *arguments, "--json")
    assert done.exit_code == 3, done.output  # a class of five rows is too few for a fit
    found = json.loads(done.stdout)["unknown"]
    shares = {of["class"]: of["dipedl"]["flagged"] for of in found["classes"]}
    assert list(shares) == ["canoe", "dinghy", "tanker"] and found["skipped"] == {"raft": 5}
    assert shares["tanker"] == 1 > shares["canoe"]
    assert "3 times a fit of logistic regression to at most 5,000 rows" in done.stderr
    said = run("check", boats, *arguments, "-q").stdout
    assert "tanker" in said.partition("Share flagged of a class that the fit did not have")[2]


def test_a_fit_keeps_what_it_would_catch_for_the_report(run, boats, tmp_path):
    out, page = tmp_path / "m.dipedl", tmp_path / "report.html"
    arguments = ["--target", "kind", "--unknown", "--model", "linear", "--out", out, "--json"]
    table = pd.read_csv(boats)
    boats = tmp_path / "more.csv"
    table[table["kind"] != "raft"].to_csv(boats, index=False)
    told = json.loads(run("fit", boats, *arguments).stdout)
    (finding,) = [f for f in told["diagnosis"]["findings"] if f["code"] == "unknown_classes"]
    assert finding["numbers"]["classes"] == 3
    assert run("report", out, boats, "--out", page).exit_code == 0
    assert "If a class were unknown" in page.read_text()


def test_check_names_constant_columns_together(run, tmp_path):
    numbers = pd.DataFrame(1.0, index=range(60), columns=[f"n{i}" for i in range(40)])
    texts = pd.DataFrame({"ship": ["T"] * 60, "age": passengers(60)["age"]})
    made = pd.concat([passengers(60)[["survived"]], numbers, texts], axis=1)
    made.to_csv(tmp_path / "data.csv", index=False)
    done = run("check", tmp_path / "data.csv", "--target", "survived", "--json")
    findings = json.loads(done.stdout)["findings"]
    found = [f["numbers"]["columns"] for f in findings if f["code"] == "constant_column"]
    assert found == [1, 40] and not any(f["code"] == "equal_columns" for f in findings)


def test_check_of_sound_data_warns_of_nothing(run, tmp_path):
    sound = passengers(300).drop(columns=["passenger", "name"])
    sound.to_csv(tmp_path / "data.csv", index=False)
    done = run("check", tmp_path / "data.csv", "--target", "survived")
    assert done.exit_code == 0 and "warning" not in done.stdout


def test_check_keeps_classes_with_their_rows_where_one_cannot_be_used(run, tmp_path):
    made = pd.concat([passengers(100).drop(columns=["passenger"])] * 2, ignore_index=True)
    made.loc[7, "fare"] = np.inf
    made.to_csv(tmp_path / "data.csv", index=False)
    done = run("check", tmp_path / "data.csv", "--target", "survived", "--json")
    found = {f["code"]: f for f in json.loads(done.stdout)["findings"]}
    assert found["duplicates"]["numbers"]["rows"] == 99
    assert "conflicting_copies" not in found


@pytest.fixture(scope="module")
def found(kept, tmp_path_factory):
    pytest.importorskip("matplotlib")
    other = tmp_path_factory.mktemp("other") / "other.csv"
    rng = np.random.default_rng(0)
    strange = passengers(60, seed=3).assign(port="Z", fare=lambda t: 900 + rng.random(len(t)))
    strange.to_csv(other, index=False)
    return evaluate.evaluate(
        read_model(kept / "model.dipedl"),
        open_table(kept / "new.csv"),
        [("other", open_table(other))],
    )


def test_numbers_of_the_report_are_those_of_the_rows(kept, found, by_hand):
    clf, X = by_hand
    y = pd.read_csv(kept / "new.csv")["survived"]
    right, flagged = clf.predict(X) == y, clf.predict_ood(X) == -1
    assert found.scores["accuracy"] == right.mean()
    assert sum(one.rows for one in found.trust) == len(y)
    assert found.trust[2].rows == flagged.sum()
    assert found.trust[2].right == right[flagged].mean()
    for line in found.classes:
        assert line.found == right[y == line.name].mean()
    assert found.least[0].row == int(clf.p_value(X).argmin()) + 1
    ranks = [clf.uncertainty(side.X, "log_density") for side in (found.test, found.others[0])]
    assert found.unknown[0].auroc == dipedl.metrics.ood_auroc(*ranks) > 0.9


def test_the_report_says_of_columns_what_a_monitor_says(run, kept, found, tmp_path):
    assert not any(drift.changed for drift in found.drifts) and not found.drift.alarm
    strange = tmp_path / "strange.csv"
    found.others[0].frame.to_csv(strange, index=False)
    report = evaluate.evaluate(found.model, open_table(strange))
    changed = {drift.usual.name: drift for drift in report.drifts if drift.changed}
    assert changed.keys() == {"fare", "port"} and changed["port"].new == ["Z"]
    told = run("monitor", kept / "model.dipedl", strange, "--window", 60, "--json", "-q")
    window = json.loads(told.stdout)["window"]
    assert dict(window["changed"]) == {name: drift.psi for name, drift in changed.items()}
    assert window["distance"] == report.drift.window.distance
    one = found.test.frame.assign(port=["Z", *found.test.frame["port"][1:]])
    one.to_csv(strange, index=False)
    drifts = evaluate.evaluate(found.model, open_table(strange)).drifts
    port = next(drift for drift in drifts if drift.new)
    assert port.new == ["Z"] and not port.changed


def test_a_new_level_among_many_is_named_in_the_report(run, tmp_path):
    ports = [f"pier {i % 60}" for i in range(300)]
    passengers(300).assign(port=ports).to_csv(tmp_path / "fit.csv", index=False)
    passengers(300, seed=1).assign(port=["Z", *ports[1:]]).to_csv(tmp_path / "new.csv", index=False)
    model = tmp_path / "model.dipedl"
    run("fit", tmp_path / "fit.csv", "--target", "survived", "--model", "linear", "--out", model)
    drifts = evaluate.evaluate(read_model(model), open_table(tmp_path / "new.csv")).drifts
    assert {drift.usual.name: drift.new for drift in drifts if drift.new} == {"port": ["Z"]}


def test_the_report_is_one_file_that_loads_nothing(found):
    text = page.render(replace(found, coverage=0.8), "new.csv", "model.dipedl")
    assert "classes 80% are promised" in text
    assert "<script" not in text and not re.search(r'(src|href)="(https?:)?//', text)
    ids = re.findall(r'\bid="([^"]*)"', text)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]*)"', text)) <= set(ids)
    assert f"{100 * found.scores['accuracy']:.1f}%" in text
    assert text.count('class="swipe"') == text.count('class="scroll"') == 6
    for one in (*found.most, *found.least):
        assert f'<th scope="row">{one.row}</th>' in text


def test_report_from_the_shell_without_classes(run, kept, tmp_path):
    pytest.importorskip("matplotlib")
    bare = pd.read_csv(kept / "new.csv").drop(columns="survived")
    bare.to_csv(tmp_path / "bare.csv", index=False)
    done = run("report", kept / "model.dipedl", tmp_path / "bare.csv", "--out", tmp_path / "r.html")
    assert done.exit_code == 0, done.output
    assert "without classes nothing is known of mistakes" in done.stdout
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Class by class" not in text and "Most trusted" in text


def test_a_test_table_of_other_classes_is_refused(run, kept, tmp_path):
    other = passengers(40).assign(survived="perhaps")
    other.to_csv(tmp_path / "other.csv", index=False)
    done = run(
        "report", kept / "model.dipedl", tmp_path / "other.csv", "--out", tmp_path / "r.html"
    )
    assert done.exit_code == 1 and "holds perhaps, and the model knows no, yes" in done.stderr


@pytest.fixture
def other_system(tmp_path):
    """Probabilities and features of two Gaussian classes, held-out rows and new ones, as files."""
    rng = np.random.default_rng(0)

    def written(n, name, shift=0.0):
        y = rng.integers(0, 2, n)
        F = rng.normal(size=(n, 2)) + 2.0 * y[:, None] + shift
        p = 1 / (1 + np.exp(4 - 2 * F.sum(axis=1)))
        proba = pd.DataFrame({"no": 1 - p, "yes": p})
        if name == "held":
            proba["truth"] = np.where(y, "yes", "no")
        proba.to_csv(tmp_path / f"{name}_p.csv", index=False)
        pd.DataFrame(F, columns=["a", "b"]).to_csv(tmp_path / f"{name}_f.csv", index=False)
        return proba

    written(200, "held")
    return tmp_path, written


def given(folder, *more):
    return [
        "score", "--proba", folder / "new_p.csv", "--features", folder / "new_f.csv",
        "--held-out-proba", folder / "held_p.csv", "--held-out-features", folder / "held_f.csv",
        "--target", "truth", "--out", folder / "a.csv", *more,
    ]  # fmt: skip


def test_evidence_beside_given_probabilities(run, other_system):
    folder, written = other_system
    proba = written(200, "new")
    assert run(*given(folder)).exit_code == 0
    found = pd.read_csv(folder / "a.csv")
    assert abs(found["flagged"].mean() - 0.05) < 0.08
    assert (found["label"] == np.where(proba["yes"] > 0.5, "yes", "no")).mean() > 0.97
    written(50, "new", shift=30.0)
    run(*given(folder))
    far = pd.read_csv(folder / "a.csv")
    assert far["flagged"].all() and np.allclose(far[["p_no", "p_yes"]], 0.5)


@pytest.mark.parametrize(
    ("n", "told"), [(120, "(0.0% errors)"), (60, "Hold out at least 100 rows")]
)
def test_notes_on_given_probabilities_are_about_the_tables(n, told, run, other_system):
    folder, written = other_system
    written(50, "new")
    rng = np.random.default_rng(0)
    yes = np.tile([0.97, 0.03], n // 2)
    held = pd.DataFrame({"no": 1 - yes, "yes": yes, "truth": ["yes", "no"] * (n // 2)})
    held.to_csv(folder / "held_p.csv", index=False)
    features = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    features.to_csv(folder / "held_f.csv", index=False)
    done = run(*given(folder))
    assert done.exit_code == 0 and told in done.stderr, done.output
    assert "--model" not in done.stderr and " fit " not in done.stderr


def test_given_probabilities_with_decimal_commas(run, other_system):
    folder, written = other_system
    written(50, "new")
    assert run(*given(folder)).exit_code == 0
    answers = pd.read_csv(folder / "a.csv")
    for name in ("held_p", "held_f", "new_p", "new_f"):
        table = pd.read_csv(folder / f"{name}.csv")
        table.to_csv(folder / f"{name}.csv", index=False, sep=";", decimal=",")
    assert run(*given(folder)).exit_code == 0
    pd.testing.assert_frame_equal(pd.read_csv(folder / "a.csv"), answers)


def test_a_comma_for_thousands_beside_decimal_points_is_refused(run, other_system):
    folder, written = other_system
    written(50, "new")
    features = pd.read_csv(folder / "new_f.csv")
    features["a"] = "1,715"
    features.to_csv(folder / "new_f.csv", index=False)
    done = run(*given(folder))
    assert done.exit_code == 1
    assert "column 'a': '1,715' has a decimal comma: numbers of this column need" in done.stderr


@pytest.mark.parametrize("features", [True, False])
def test_held_out_rows_that_are_not_used_are_told(features, run, other_system):
    folder, written = other_system
    written(50, "new")
    command = given(folder)
    command = command if features else [*command[:3], *command[5:7], *command[9:]]
    assert "not used" not in run(*command).stderr
    held = pd.read_csv(folder / "held_p.csv")
    held.loc[4, "yes"], held.loc[6, "yes"] = np.nan, 2.0
    held.to_csv(folder / "held_p.csv", index=False)
    done = run(*command)
    assert done.exit_code == 0
    assert "2 of 200 rows of" in done.stderr
    assert "not used; row 5 is left out: a probability is missing" in done.stderr


#: Names of two classes in held-out rows, and in new ones.
CLASSES = [
    (["1", "2"], ["1.0", "2.0"]),
    (["1.0", "2.0"], ["1", "2"]),
    (["0", "1"], ["p_0", "p_1"]),
    (["FALSE", "TRUE"], ["false", "true"]),
    (["2026-11-22", "2026-11-23"], ["2026-11-22T00:00:00Z", "2026-11-23 00:00"]),
    (["007", "07"], ["007", "07"]),
]


@pytest.fixture(scope="module")
def plain_answers():
    """Answers to the tables as they are written, with features and without."""
    return {}


@pytest.mark.parametrize(
    ("held", "new", "features", "ending"),
    sample_of_rows(
        [
            *((*of, features, "csv") for of, features in zip(CLASSES, [1, 0] * 3, strict=True)),
            (*CLASSES[4], True, "parquet"),
        ],
        *(0, 3, 5, 6),
    ),
)
def test_classes_of_given_probabilities_have_one_spelling(
    held, new, features, ending, run, other_system, plain_answers
):
    """In any order of the columns; without features too, where the density sees logarithms."""
    folder, written = other_system
    written(200, "new")
    asked = [a for a in given(folder) if features or not str(a).endswith(("_f.csv", "features"))]
    plain = pd.read_csv(folder / "new_p.csv")
    if features not in plain_answers:
        assert run(*asked).exit_code == 0
        plain_answers[features] = pd.read_csv(folder / "a.csv")
    expected = plain_answers[features]
    one = pd.read_csv(folder / "held_p.csv")
    one = one.replace({"truth": dict(zip(["no", "yes"], held, strict=True))})
    one = one.rename(columns=dict(zip(["no", "yes"], held, strict=True)))
    one.to_csv(folder / "held_p.csv", index=False)
    other = plain.rename(columns=dict(zip(["no", "yes"], new, strict=True)))[new[::-1]]
    getattr(other, f"to_{ending}")(folder / "new_p.csv", index=False)
    done = run(*asked)
    assert done.exit_code == 0, done.stderr
    found = pd.read_csv(folder / "a.csv", dtype={"label": str})
    names = dict(zip(["no", "yes"], held, strict=True))
    assert found["label"].tolist() == expected["label"].map(names).tolist()
    for name, text in names.items():
        np.testing.assert_allclose(found[f"p_{text}"], expected[f"p_{name}"], rtol=1e-9)
    np.testing.assert_allclose(found["p_value"], expected["p_value"])
