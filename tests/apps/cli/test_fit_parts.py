"""dipedl fit of a folder, with --like, and dipedl merge, as a user types them."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from dipedl.apps.cli.app import app
from dipedl.apps.large import plans
from dipedl.apps.large.fitting import OrderInParts
from dipedl.apps.table.table_model import read_model

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def days(tmp_path_factory):
    folder = tmp_path_factory.mktemp("days")
    rng = np.random.default_rng(0)
    for day in ("one", "two"):
        (folder / day).mkdir()
        for i in range(3):
            y = rng.integers(0, 2, 200)
            frame = pd.DataFrame({"a": rng.normal(size=200) + 2 * y, "b": rng.normal(size=200)})
            frame = frame.assign(c=np.array(["x", "z"])[rng.integers(0, 2, 200)], y=y)
            frame.to_parquet(folder / day / f"{i}.parquet", index=False)
    return folder


def run(*words, code=0):
    found = CliRunner().invoke(app, [str(word) for word in words])
    assert found.exit_code == code, found.output
    return found.output


@pytest.fixture(scope="module")
def fitted(days):
    words = ("--target", "y", "--model", "linear", "--density", "gaussians", "--workers", "1")
    out = run("fit", days / "one", *words, "--out", days / "one.dipedl", "-q")
    assert "600 rows" in out and "the density gaussians" in out
    assert not (days / "one.dipedl.parts").exists()
    return days / "one.dipedl"


def test_rows_of_the_classifier_are_told_where_they_are_fewer(days, fitted, tmp_path):
    model, page = tmp_path / "model.dipedl", tmp_path / "report.html"
    words = ("--target", "y", "--model", "linear", "--density", "gaussians", "--workers", "1")
    words = (*words, "--out", model)
    said = run("fit", days / "one", *words, "--reservoir", 150)
    facts = read_model(model).facts
    told = f"{facts['learned']:,} rows, the classifier from {facts['classifier_rows']:,} of them"
    assert 100 <= facts["classifier_rows"] <= 160 < 400 < facts["learned"]
    assert f"Learned:  y from {told}; classes of these and held-out rows: 0 " in said
    assert told in run("inspect", model)
    run("report", model, days / "two" / "0.parquet", "--out", page, "-q")
    assert told in page.read_text()
    assert "the classifier from" not in run("inspect", fitted)


def test_two_days_are_merged_and_answered(days, fitted, tmp_path):
    two, both = tmp_path / "two.dipedl", tmp_path / "both.dipedl"
    run("fit", days / "two", "--like", fitted, "--workers", "1", "--out", two, "-q")
    assert "Merged:   2 models" in run("merge", fitted, two, "--out", both)
    facts = read_model(both).facts
    assert facts["rows"] == 1200 and sum(facts["classes"].values()) == 1200
    assert facts["learned"] + facts["held_out"]["held_out_rows"] == 1200
    answered = tmp_path / "answers.jsonl"
    run("score", both, days / "one" / "0.parquet", "--out", answered, "-q")
    labels = [json.loads(line)["label"] for line in answered.read_text().splitlines()]
    truth = pd.read_parquet(days / "one" / "0.parquet")["y"].astype(str)
    assert (np.array(labels) == truth).mean() > 0.75


def test_a_merge_chooses_the_prior_by_the_rows_of_all(days, fitted, tmp_path):
    rng, y = np.random.default_rng(0), (np.arange(6000) % 300 == 0).astype(int)
    rare = pd.DataFrame({"a": rng.normal(size=6000) + 2 * y, "b": rng.normal(size=6000)})
    rare = rare.assign(c=np.array(["x", "z"])[rng.integers(0, 2, 6000)], y=y)
    (tmp_path / "two").mkdir()
    rare.to_parquet(tmp_path / "two" / "0.parquet", index=False)
    two, both = tmp_path / "two.dipedl", tmp_path / "both.dipedl"
    np.testing.assert_array_equal(read_model(fitted).classifier.prior_, 0.5)
    run("fit", tmp_path / "two", "--like", fitted, "--workers", "1", "--out", two, "-q")
    assert "Prior:    the frequencies" in run("merge", fitted, two, "--out", both)
    merged = read_model(both)
    counts = np.array([merged.facts["classes"][name] for name in "01"])
    assert counts[0] > 10 * counts[1]
    np.testing.assert_allclose(merged.classifier.prior_, counts / counts.sum(), rtol=1e-12)


def test_columns_and_classes_in_another_order_are_found_by_their_names(days, fitted, tmp_path):
    rows = pd.concat([pd.read_parquet(path) for path in sorted((days / "two").glob("*"))])
    ordered = rows.sort_values("y")
    merged = []
    for name, frame in {"as": rows, "other": ordered[rows.columns[::-1]]}.items():
        (tmp_path / name).mkdir()
        frame.to_parquet(tmp_path / name / "0.parquet", index=False)
        two, both = tmp_path / f"{name}.dipedl", tmp_path / f"{name}-both.dipedl"
        run("fit", tmp_path / name, "--like", fitted, "--workers", "1", "--out", two, "-q")
        run("merge", fitted, two, "--out", both)
        merged.append(read_model(both).classifier)
    X = pd.DataFrame({"a": [0.0, 2.0], "b": [1.0, 30.0], "c": pd.Categorical(["x", "z"])})
    answers = [clf.predict_proba(X[list(clf.feature_names_in_)]) for clf in merged]
    np.testing.assert_allclose(*answers, rtol=1e-10)


def test_models_that_were_fitted_apart_are_refused(days, fitted, tmp_path):
    other = tmp_path / "other.dipedl"
    words = ("--target", "y", "--model", "linear", "--density", "gaussians", "--workers", "1")
    run("fit", days / "two", *words, "--out", other, "-q")
    assert "fitted apart" in run("merge", fitted, other, "--out", tmp_path / "no.dipedl", code=1)
    assert "two models" in run("merge", fitted, code=2)


def test_a_model_that_is_given_twice_is_refused(days, fitted, tmp_path):
    out, copy = tmp_path / "no.dipedl", tmp_path / "copy.dipedl"
    copy.write_bytes(fitted.read_bytes())
    for second in (fitted, copy):
        assert "its rows would count twice" in run("merge", fitted, second, "--out", out, code=2)
    again = tmp_path / "again.dipedl"
    run("fit", days / "one", "--like", fitted, "--workers", "1", "--out", again, "-q")
    assert "which would count twice" in run("merge", fitted, again, "--out", out, code=1)
    assert not out.exists()


def test_a_plan_is_told_and_nothing_written(days, tmp_path):
    words = ("fit", days / "one", "--target", "y", "--dry-run", "--out", tmp_path / "no.dipedl")
    words = (*words, "--model", "linear", "--workers", "1")
    out = run(*words)
    assert "3, with 600 rows, read twice" in out and "MB for this process" in out
    assert re.search(r"Time: +about [\d,]+ s, measured on 600 rows", out)
    found = json.loads(run(*words, "--json"))
    assert found["rows"] == found["sample"] == 600 and found["seconds"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("cost", "right"),
    [
        (lambda n: 1 + 8e-4 * n, 1 + 8e-4 * 90_000),
        (lambda n: 1e-4 * n, 1e-4 * 90_000),
        (lambda n: 3e-7 * n**1.5, 3e-7 * 90_000**1.5),
    ],
)
def test_a_plan_takes_a_part_of_the_time_of_its_fit(tmp_path, monkeypatch, cost, right):
    """On a clock of its own: a fit of n rows takes so many seconds."""
    rows = np.arange(100_000)
    frame = pd.DataFrame({"a": rows / 7, "y": rows % 2})
    frame.to_parquet(tmp_path / "many.parquet", index=False)
    now = [0.0]

    def fitted(data, order, engine):
        n = int(0.9 * len(data))
        now[0] += cost(n)
        return SimpleNamespace(model=SimpleNamespace(rows=np.arange(n)))

    monkeypatch.setattr(plans, "learn_parts", fitted)
    monkeypatch.setattr(plans.time, "perf_counter", lambda: now[0])
    found = plans.plan_fit(str(tmp_path), OrderInParts("y"), "20000", 1)
    assert found.seconds == pytest.approx(max(right, 1), rel=0.1)
    assert now[0] < 0.5 * max(right, 1)


def test_a_plan_passes_over_parts_that_cannot_be_read(days, tmp_path):
    """A whole footer over corrupt pages: that they cannot be read is found when they are."""
    folder = tmp_path / "odd"
    shutil.copytree(days / "one", folder)
    corrupt_pages(folder / "0.parquet")
    words = ("--target", "y", "--model", "linear", "--dry-run", "--workers", "1")
    out = run("fit", folder, *words)
    assert "1 files cannot be read" in out and "measured on 400 rows" in out
    for name in ("1.parquet", "2.parquet"):
        corrupt_pages(folder / name)
    assert "none of the 3 parts can be read" in run("fit", folder, *words, code=1)


def corrupt_pages(file):
    content = bytearray(file.read_bytes())
    content[4:2000] = bytes(1996)
    file.write_bytes(content)


def test_a_plan_says_why_it_knows_no_time(days, tmp_path):
    pd.read_parquet(days / "one").assign(y=1).to_parquet(tmp_path / "one.parquet")
    out = run("fit", tmp_path, "--target", "y", "--dry-run")
    assert "Time:     not known" in out and "two classes are needed" in out
    words = ("fit", tmp_path, "--target", "y", "--workers", "1", "--out", tmp_path / "m.dipedl")
    assert "m.dipedl.parts: --resume goes on" in run(*words, code=1).replace("\n", " ")


@pytest.mark.parametrize("in_parts", [True, False])
def test_numbers_of_many_classes_are_classes_if_that_is_said(in_parts, tmp_path):
    y = np.arange(201).repeat(12 if in_parts else 10)
    frame = pd.DataFrame({"a": y % 16 + 0.0, "b": y // 16 + 0.0})
    frame += np.random.default_rng(0).normal(scale=0.1, size=frame.shape)
    frame.assign(y=y).to_parquet(tmp_path / "many.parquet", index=False)
    words = ("fit", tmp_path / "many.parquet", "--target", "y", "--model", "linear")
    words = (*words, "--density", "gaussians", *("--workers", "1") * in_parts, "-q")
    out = tmp_path / "many.dipedl"
    told = run(*words, "--out", out, code=1)
    assert "if these numbers are names of classes: --types y=category" in told
    run(*words, "--types", "y=category", "--out", out)
    assert len(read_model(out).classes) == 201
    assert "a target holds classes" in run(*words, "--types", "y=numeric", code=2)
    checked = run("check", tmp_path / "many.parquet", "--target", "y", "--types", "y=category")
    assert "regression" not in checked


def test_all_refused_rows_are_counted_and_files_that_cannot_be_read_named(days, tmp_path):
    folder = tmp_path / "odd"
    folder.mkdir()
    frame = pd.concat([pd.read_parquet(path) for path in sorted((days / "one").glob("*"))])
    frame.to_parquet(folder / "a.parquet", index=False)
    none = pd.concat([frame] * 3).head(1500).astype({"y": float}).assign(y=np.nan)
    none.to_parquet(folder / "b.parquet", index=False)
    (folder / "c.parquet").write_bytes(b"PAR1 this is none")
    words = ("fit", folder, "--target", "y", "--model", "linear", "--density", "gaussians")
    words = (*words, "--workers", "1", "--out", tmp_path / "a.dipedl", "-q")
    work = tmp_path / "a.dipedl.parts"
    work.mkdir()
    (work / "notes.txt").write_text("mine")
    (work / f"{0:032x}.part").write_text("of a fit that was stopped")
    out = run(*words, code=3)
    assert "refused: 1,495 more rows" in out and "failed: " in out and "c.parquet" in out
    found = re.search(r"2,100 = (\d+) learned \+ (\d+) held out \+ 1,500 refused", out)
    assert found is not None and int(found[1]) + int(found[2]) == 600
    assert [path.name for path in work.iterdir()] == ["notes.txt"]


ONE = ("ONE", "--target", "y")
#: Words of the command line, exit code, message; ONE is a folder of tables, FITTED their model.
WRONG = [
    *(
        (("ONE", "--like", "FITTED", f"--{option}", value), 2, f"--{option} cannot be given with")
        for option, value in {
            "model": "boosting", "density": "default", "types": "c=text", "false-alarms": "0.05",
            "seed": "0",
        }.items()
    ),
    (("ONE", "--like", "FITTED", "--target", "c"), 2, "that model predicts 'y'"),
    ((*ONE, "--drop", "nope", "--workers", "1"), 1, "--drop names 'nope', which is not in part"),
    (("ONE",), 2, "--target must be given"),
    ((*ONE, "--density", "kde"), 2, "--density must be one of"),
    ((*ONE, "--time-column", "7"), 2, "--time-column is for a fit in memory"),
    ((*ONE, "--rows", "7"), 2, "--rows is for a fit in memory; in parts --reservoir says"),
    ((*ONE, "--gaps", "7"), 2, "--gaps is for a fit in memory"),
    ((*ONE, "--delimiter", "7"), 2, "--delimiter is for a CSV file"),
    ((*ONE, "--extractor", "7"), 2, "--extractor is for --images"),
    (("ONE", "--images", "--engine", "local"), 2, "--engine is for tables in parts"),
    (("ONE", "--images", "--resume"), 2, "--resume is for tables in parts"),
    (("ONE", "--images", "--key", "a"), 2, "--key is for tables in parts"),
]  # fmt: skip


@pytest.mark.parametrize(("words", "code", "told"), WRONG)
def test_options_that_do_not_fit_are_refused(days, fitted, tmp_path, words, code, told):
    paths, out = {"ONE": days / "one", "FITTED": fitted}, tmp_path / "no.dipedl"
    said = run("fit", *(paths.get(word, word) for word in words), "--out", out, code=code)
    assert told in " ".join(said.split()) and not out.exists()


def test_what_verbose_says_is_no_result(days, tmp_path):
    words = ("--target", "y", "--model", "linear", "--density", "gaussians", "--workers", "1")
    found = CliRunner().invoke(
        app,
        ["fit", *map(str, (days / "one", *words)), "--out", str(tmp_path / "m"), "-v", "--json"],
    )
    assert json.loads(found.stdout)["rows"] == 600 and "classifier fitted" in found.stderr


@pytest.mark.parametrize("rows", ["none", "unreadable"])
@pytest.mark.parametrize("density", ["default", "gaussians"])
def test_a_folder_without_a_row_is_refused(tmp_path, rows, density):
    file = tmp_path / "data" / "a.parquet"
    file.parent.mkdir()
    pd.DataFrame({"a": [1.0], "y": ["p"]})[:0].to_parquet(file)
    if rows == "unreadable":
        file.write_bytes(b"PAR1 and no more")
    words = ("fit", file.parent, "--target", "y", "--density", density, "--workers", "1")
    out = ("--out", tmp_path / "m.dipedl")
    assert "there is no row with a class in 'y'" in run(*words, *out, code=1)
    assert "there is no row to fit on" in run(*words, *out, "--dry-run", code=1)


@pytest.mark.parametrize("as_folder", [False, True])
def test_very_unequal_classes_get_the_prior_of_their_frequencies(as_folder, tmp_path):
    rng, rare = np.random.default_rng(0), np.arange(400) % 40 == 0
    frame = pd.DataFrame({"a": rng.normal(size=400) + 2 * rare, "b": rng.normal(size=400)})
    frame = frame.assign(y=np.where(rare, "rare", "usual"))
    data, model = tmp_path / "data.parquet", tmp_path / "model.dipedl"
    words = ["--target", "y", "--model", "linear", "--out", model]
    frame.to_parquet(data, index=False)
    if as_folder:
        data = tmp_path / "folder"
        data.mkdir()
        frame[:200].to_parquet(data / "0.parquet", index=False)
        frame[200:].to_parquet(data / "1.parquet", index=False)
        words += ["--density", "gaussians", "--workers", "1"]
    assert "one has 39 times the rows" in run("fit", data, *words)
    counts = pd.Series(read_model(model).facts["classes"])
    prior = read_model(model).classifier.prior_
    assert prior == pytest.approx(counts / counts.sum(), rel=0.5)  # some are held out
    run("fit", data, *words, "--prior", "even", "-q")
    np.testing.assert_array_equal(read_model(model).classifier.prior_, [0.5, 0.5])
