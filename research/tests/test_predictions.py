"""Rows from predictions alone: published ones and arrays of one's own, and what is refused."""

import csv
import importlib
import io
import json
import re
import shutil
import sys
import types

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import roc_auc_score
from typer.testing import CliRunner

from dipedl.baselines import DDU
from dipedl_bench import Store, load_rows, load_suite, score
from dipedl_bench.commands.run import bench as app
from dipedl_bench.results.predictions import Predictions, pack_features, unpack_features
from dipedl_bench.running import scoring
from dipedl_bench.running.training import make_part
from dipedl_bench.spec.plan import plan
from dipedl_bench.tables.table import bench_table

OOD = ("kmnist", "omniglot", "omniglot_inverted")


def bench(*arguments):
    return CliRunner().invoke(app, [*map(str, arguments)])


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """Root of a smoke run of MNIST, with the predictions of its network."""
    root = tmp_path_factory.mktemp("published")
    store, names = Store(root, "mnist", "smoke"), ["max-softmax", "energy", "ddu"]
    for cell in plan(load_suite("mnist"), "smoke", "mnist.toml", methods=names, seeds=[10]):
        for part in cell.parts:
            make_part(cell, part, store, None, lambda text: None)
    (file,) = scoring.export("mnist", "smoke", root)
    assert file.stat().st_size < 100_000
    return root


def rows_of(root, **options):
    return score("mnist", profile="smoke", published=root, **options)


def small(rng, n=60, k=3, p=5, shift=3.0):
    labels = np.arange(n) % k
    features = rng.normal(size=(n, p)) + shift * np.eye(p)[labels]
    weight, bias = np.eye(p)[:k], np.zeros(k)
    arrays = {"logits": features[:, :k], "features": features, "labels": labels}
    arrays |= {f"calibration_{key}": of for key, of in arrays.items()}
    far = rng.normal(size=(40, p))
    arrays |= {"ood_far_logits": far[:, :k], "ood_far_features": far}
    return arrays | {"head_weight": weight, "head_bias": bias}


# ------------------------------------------------------------------------ published predictions


@pytest.mark.parametrize("name", ["max-softmax", "energy"])
def test_a_score_of_logits_has_the_numbers_of_its_row(published, name):
    (row,) = (row for row in load_rows("mnist", out=published) if row["method"] == name)
    (scored,) = rows_of(published, methods=[name])
    assert scored["method"] == f"{name}-calibration"
    assert scored["metrics"] == pytest.approx(row["metrics"], abs=1e-6)
    for key in ("baselines", "n_parameters", "forward_passes"):
        assert scored[key] == row[key]
    assert scored["parts"]["classifier"] == row["parts"]["classifier"]


def test_a_score_of_features_is_fitted_on_the_calibration_rows(published):
    rows = load_rows("mnist", out=published)
    stored = Store(published, "mnist", "smoke").arrays_of(rows[0], "classifier")
    (scored,) = rows_of(published, methods=["ddu"])
    exact = DDU(features="passthrough")
    exact.fit(stored["validation"]["features"], stored["validation"]["y"])
    u = {split: exact.uncertainty(of["features"]) for split, of in stored.items()}
    for ood in OOD:
        known, unknown = u["test"], u[f"ood/{ood}"]
        y = np.repeat([0, 1], [len(known), len(unknown)])
        expected = roc_auc_score(y, np.concatenate([known, unknown]))
        assert scored["metrics"][f"auroc/{ood}"] == pytest.approx(expected, abs=5e-3)


def test_where_a_suite_has_no_predictions_those_of_another_stand_in(tmp_path):
    folder = tmp_path / "cifar10-resnet" / "cpu" / "predictions"
    folder.mkdir(parents=True)
    (folder / "resnet-0-20.npz").touch()
    with pytest.warns(UserWarning, match="of 'cifar10' are .*'cifar10-resnet' are scored"):
        assert scoring.find_predictions("cifar10", published=tmp_path) == [*folder.glob("*")]
    own = tmp_path / "cifar10" / "cpu" / "predictions"
    own.mkdir(parents=True)
    (own / "cnn-0-10.npz").touch()
    assert scoring.find_predictions("cifar10", published=tmp_path) == [*own.glob("*")]


def test_all_methods_of_the_network_alone_are_scored_and_kept(published, tmp_path):
    done = bench(
        "score", "mnist", "--profile", "smoke", "--published", published, "--out", tmp_path
    )
    assert done.exit_code == 0, done.stderr
    assert " energy " in done.stdout and " energy-calibration " in done.stdout
    names = {row["method"] for row in load_rows("mnist", out=tmp_path)}
    assert {"knn-calibration", "entropy-calibration", "mahalanobis-calibration"} <= names
    assert not any("dip-edl" in name or "mc-dropout" in name for name in names)
    assert bench("table", "mnist", "--out", tmp_path, "--no-trivial").exit_code == 0


def test_published_rows_stand_beside_with_the_seeds_that_are_scored(published, tmp_path):
    root = shutil.copytree(published, tmp_path / "more")
    store = Store(root, "mnist", "smoke")
    for row in store.rows():
        metrics = dict.fromkeys(row["metrics"], 0.0)
        store.append({**row, "seed": 20, "metrics": metrics})
    options = ["--profile", "smoke", "--published"]
    name = ["score", "mnist", "--method", "energy"]
    shown, expected = (bench(*name, *options, of).stdout for of in (root, published))
    assert shown == expected and "Seeds 10.\n" in shown


def test_methods_that_are_published_in_another_profile_alone_are_named(published, tmp_path):
    root = shutil.copytree(published, tmp_path / "more")
    other = Store(root, "mnist", "gpu")
    for row in Store(root, "mnist", "smoke").rows():
        other.append({**row, "profile": "gpu", "method": "i-edl", "title": "I-EDL"})
    name = ["score", "mnist", "--method", "energy", "--profile", "smoke", "--published"]
    told = bench(*name, root).stderr
    assert "in profile gpu alone: I-EDL;" in told and f"--profile gpu --out {root}" in told
    assert "alone" not in bench(*name, published).stderr


def test_a_density_informed_method_can_be_scored_by_name(published):
    (row,) = rows_of(published, methods="dip-edl-features")
    assert row["metrics"]["brier_id"] > 0 and row["config"]["below"]["density"]


def test_features_are_kept_to_a_sixteenth_of_each_component(rng):
    scale = np.array([100.0, 1.0, 1e-2])
    rows = {"validation": rng.normal(size=(500, 3)) * scale + 7, "test": rng.normal(size=(40, 3))}
    packed = pack_features(rows)
    codes = packed["calibration_codes"]
    assert codes.dtype == np.uint8 and codes.shape == (2, 3, 500)
    back = unpack_features(packed, codes, np.empty(0), None)
    error = np.abs(back - rows["validation"]) / rows["validation"].std(axis=0)
    assert 0.01 < error.max() < 0.05  # a few axes are not quite those of the columns
    head = rng.normal(size=(2, 3)), rng.normal(size=2)
    logits = rows["validation"] @ head[0].T + head[1]
    features = unpack_features(packed, codes, logits, head)
    np.testing.assert_allclose(features @ head[0].T + head[1], logits, atol=1e-9)


def test_predictions_are_read_as_they_were_written(rng, tmp_path):
    arrays = {**small(rng), "seed": 4}
    moved = {f"shifted_dim_{key}": arrays[key][:20] for key in ("logits", "features", "labels")}
    made = Predictions.from_arrays(arrays | moved)
    made.write(tmp_path / "a" / "x.npz")
    again = Predictions.read(tmp_path / "a" / "x.npz")
    assert again.seed == 4 and again.sizes == made.sizes and again.ood == ("far",)
    for split, named in made.arrays.items():
        for name in ("logits", "probabilities"):
            np.testing.assert_allclose(again.arrays[split][name], named[name], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(again.arrays[split]["features"], named["features"], atol=0.2)
    for split in ("test", "shifted/dim"):
        np.testing.assert_array_equal(again.arrays[split]["y"], made.arrays[split]["y"])
    with pytest.raises(ValueError, match="shifted_dim_labels is missing"):
        Predictions.from_arrays(arrays | {k: of for k, of in moved.items() if "labels" not in k})
    (row,) = score(arrays | moved, methods=["Energy"])
    right = arrays["logits"][:20].argmax(axis=1) == arrays["labels"][:20]
    assert row["metrics"]["accuracy/dim"] == right.mean()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seeds": [11]}, ValueError, r"seeds: of 'mnist' there are predictions of \[10\], got 11"),
        ({"methods": ["enrgy"]}, ValueError, "unknown method 'enrgy', did you mean 'energy'"),
        ({"methods": ["edl"]}, ValueError, "unknown method 'edl'"),
        (
            {"methods": ["energy", "energy"]},
            ValueError,
            "different names, got 'energy' of 'Energy'",
        ),
        ({"methods": ["nowhere.at:All"]}, ValueError, "'nowhere.at:All' cannot be imported"),
        ({"methods": ["sklearn.svm:SVC"]}, ValueError, r"must have fit\(features, logits, labels"),
        ({"methods": [3]}, ValueError, "methods must be classes, or texts such as"),
        ({"profile": "cqu"}, ValueError, "unknown profile 'cqu', did you mean 'cpu'"),
        ({"methods": ["margin"]}, ValueError, "^methods: unknown method .*'my.module:Class'"),
        ({"methods": ["my.scores.Margin"]}, ValueError, "^methods: .*'my.scores:Margin'"),
        ({"profile": "paper"}, FileNotFoundError, "export-predictions mnist --profile paper"),
        ({"profile": "cpu"}, FileNotFoundError, r"but of: mnist \(profile smoke\)"),
    ],
)
def test_what_cannot_be_scored_is_refused(published, options, error, message):
    with pytest.raises(error, match=message):
        score("mnist", **{"profile": "smoke", "published": published, **options})


OWN = """
[suite]
name = "own"
title = "A suite of one's own"
extends = "mnist"
only = ["max-softmax", "energy"]
ood = ["kmnist"]
seeds = [10]

[profiles.smoke]
extends = "smoke"
"""


def test_the_network_of_a_suite_of_ones_own_is_scored_beside_its_rows(tmp_path, monkeypatch):
    file, root = tmp_path / "own.toml", tmp_path / "results"
    file.write_text(OWN)
    options = ["--published", root, "--method", "energy"]
    done = bench("score", file, *options)
    assert done.exit_code == 2 and f"export-predictions {file} --profile smoke" in done.stderr
    store = Store(root, "own", "smoke")
    for cell in plan(load_suite(file), "smoke", "own.toml"):
        for part in cell.parts:
            make_part(cell, part, store, None, lambda text: None)
    assert bench("export-predictions", file, "--out", root).exit_code == 0
    done = bench("score", file, *options)
    assert done.exit_code == 0, done.stderr
    assert re.search(r"→ +\d+  energy-calibration ", done.stdout) and " max-softmax " in done.stdout
    run = {row["method"]: row for row in store.rows()}
    monkeypatch.setenv("DIPEDL_BENCH", str(root))  # where its results are by default
    scored = {row["method"]: row for row in score(file, out=tmp_path / "more")}
    assert scored.keys() >= {"max-softmax-calibration", "energy-calibration"}
    for name, row in run.items():
        again = scored[f"{name}-calibration"]
        assert again["metrics"] == pytest.approx(row["metrics"], abs=1e-6)
        assert (again["suite"], again["profile"]) == ("own", "smoke")
    with pytest.raises(
        ValueError, match=r"^seeds: of 'own' there are predictions of \[10\], got 4"
    ):
        score(str(file), seeds=[4])


# ------------------------------------------------------------------------------- own methods


class Margin:
    sign = -1.0

    def fit(self, features, logits, labels):
        self.mean = logits.mean()

    def uncertainty(self, features, logits):
        return self.sign * np.ptp(np.sort(logits, axis=1)[:, -2:], axis=1)


class Turned(Margin):
    sign = 1.0


class Heady(Margin):
    def fit(self, features, logits, labels, head):
        np.testing.assert_allclose(features @ head[0].T + head[1], logits, atol=1e-6)


@pytest.mark.filterwarnings("ignore:.* looks turned round:UserWarning")
def test_classes_of_ones_own_are_scored(published):
    right, turned, heady = rows_of(published, methods=[Margin, Turned, Heady])
    assert [row["method"] for row in (right, turned, heady)] == ["Margin", "Turned", "Heady"]
    assert heady["metrics"] == right["metrics"]
    for ood in OOD:
        both = right["metrics"][f"auroc/{ood}"] + turned["metrics"][f"auroc/{ood}"]
        assert both == pytest.approx(1)


class FeatureNorm(Margin):
    def uncertainty(self, features, logits):
        return -np.linalg.norm(features, axis=1)


def test_a_score_of_logits_alone_needs_no_features(rng):
    arrays = small(rng)
    (full,) = score(arrays, methods=[Margin])
    bare = {k: of for k, of in arrays.items() if "features" not in k and "head" not in k}
    (row,) = score(bare, methods=[Margin])
    assert row["metrics"] == pytest.approx(full["metrics"], abs=1e-12)
    message = r"'FeatureNorm' cannot be scored: .*line \d+ of .*; features are None.*pass features"
    with pytest.raises(ValueError, match=message):
        score(bare, methods=[FeatureNorm])


def test_a_score_that_is_turned_round_is_told(rng):
    message = r"Turned.uncertainty looks turned round: AUROC 0\.\d\d"
    with pytest.warns(UserWarning, match=message) as told:
        score(small(rng), methods=[Turned])
    assert {warning.filename for warning in told} == {__file__}


class Length(Margin):
    def fit(self, features, logits, labels, head):
        self.center = (features / np.linalg.norm(features, axis=1, keepdims=True)).mean(axis=0)

    def uncertainty(self, features, logits):
        unit = features / np.linalg.norm(features, axis=1, keepdims=True)
        return -unit @ self.center - np.ptp(logits, axis=1)


class Last(Length):
    """The same, scored after classes that change what they get."""


class LengthInPlace(Length):
    def fit(self, features, logits, labels, head):
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        self.center = features.mean(axis=0)
        for array in (features, logits, labels, *head):
            array[:] = 1

    def uncertainty(self, features, logits):
        features /= np.linalg.norm(features, axis=1, keepdims=True)
        u = -features @ self.center - np.ptp(logits, axis=1)
        features[:], logits[:] = 0, 0
        return u


class Whole:
    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        for array in (*self.estimator.linear_head(), self.estimator.transform(X)):
            array[:] = 1
        X[:], y[:] = 1, 0
        return self

    def predict_proba(self, X):
        return self.estimator.predict_proba(X)

    def uncertainty(self, X):
        return -self.estimator.logits(X).max(axis=1)


@pytest.mark.filterwarnings("ignore:.* looks turned round:UserWarning")
def test_a_method_that_changes_its_arguments_in_place_changes_no_row(published):
    first, own, _, last = rows_of(published, methods=[Length, LengthInPlace, Whole, Last])
    assert own["metrics"] == pytest.approx(first["metrics"], abs=1e-12)
    assert last["metrics"] == first["metrics"]


# --------------------------------------------------------------------------------- own arrays


def test_arrays_of_ones_own_have_a_row(rng):
    arrays = small(rng)
    (row,) = score(arrays, name="plain", title="Plain")
    P = softmax(arrays["logits"], axis=1), softmax(arrays["ood_far_logits"], axis=1)
    u = np.concatenate([1 - of.max(axis=1) for of in P])
    assert row["metrics"]["auroc/far"] == pytest.approx(roc_auc_score(np.arange(100) >= 60, u))
    assert row["metrics"]["accuracy"] == (P[0].argmax(axis=1) == arrays["labels"]).mean()
    assert (row["suite"], row["profile"], row["title"]) == ("plain", "imported", "Plain")
    wrong = (P[0].argmax(axis=1) != arrays["labels"]).astype(float)
    far = {"ood_far_uncertainty": np.full(40, 2.0)}
    (own,) = score(arrays | far | {"uncertainty": wrong})
    with pytest.warns(UserWarning, match="lower for wrong predictions than for right ones"):
        score(arrays | far | {"uncertainty": -wrong})
    assert own["metrics"]["auroc/far"] == 1 and own["sha256"] != row["sha256"]
    proba = {"proba": P[0], "ood_far_proba": P[1], "labels": arrays["labels"]}
    assert score(proba)[0]["metrics"] == pytest.approx(row["metrics"])
    ddu, energy = score(arrays, methods=["DDU", "Energy"], name="plain")
    exact = DDU(features="passthrough").fit(arrays["features"], arrays["labels"])
    names = ("features", "ood_far_features")
    u = np.concatenate([exact.uncertainty(arrays[name]) for name in names])
    assert ddu["metrics"]["auroc/far"] == pytest.approx(roc_auc_score(np.arange(100) >= 60, u))
    assert energy["metrics"]["accuracy"] == row["metrics"]["accuracy"]


def test_rows_of_the_same_arrays_have_the_same_hash(published, rng, tmp_path):
    arrays = small(rng)
    np.savez(tmp_path / "mine.npz", **arrays)
    rows = [*score(arrays), *score(tmp_path / "mine.npz", methods=["Energy", Margin], name="b")]
    assert len({row["sha256"] for row in rows}) == 1
    others = [{"ood_far_logits": arrays["ood_far_logits"] + 1}, {"seed": 1}]
    others += [{"calibration_labels": arrays["calibration_labels"][::-1]}]
    for change in others:
        arrays = {**arrays, "head_weight": None, "head_bias": None, **change}
        (row,) = score(
            {key: of for key, of in arrays.items() if of is not None}, methods=["Energy"]
        )
        rows.append(row)
    assert len({row["sha256"] for row in rows}) == 4
    (file,) = scoring.find_predictions("mnist", "smoke", None, published)
    rows = [*rows_of(published, methods=["energy"]), *score(file, methods=["Energy"])]
    assert rows[0]["sha256"] == rows[1]["sha256"]


ARRAYS = small(np.random.default_rng(0))


@pytest.mark.parametrize(
    ("source", "options", "error", "argument"),
    [
        (ARRAYS, {"seeds": [99]}, ValueError, "seeds"),
        (ARRAYS, {"profile": "gpu"}, ValueError, "profile"),
        (ARRAYS, {"suite": "mine", "published": "there"}, ValueError, "published"),
        (ARRAYS, {"suite": "own.toml"}, ValueError, "suite"),
        ("mnist", {"name": "mine"}, ValueError, "name"),
        ("mnist", {"title": "Mine"}, ValueError, "title"),
        ("mnist", {"suite": "mnist"}, ValueError, "suite"),
        (ARRAYS, {"title": "Mine", "methods": "energy"}, ValueError, "title"),
        ("mnist", {"methods": []}, ValueError, "methods"),
        ("mnist", {"methods": 5}, ValueError, "methods"),
        ("mnist", {"seeds": 10}, TypeError, "seeds"),
        ("mnist", {"seeds": "10"}, TypeError, "seeds"),
        ("mnist", {"profile": 5}, TypeError, "profile"),
        ("mnist", {"published": 5}, TypeError, "published"),
        ("mnist", {"out": 5}, TypeError, "out"),
        (ARRAYS, {"name": 5}, TypeError, "name"),
        (ARRAYS, {"title": 5}, TypeError, "title"),
        (ARRAYS, {"suite": 5}, TypeError, "suite"),
        (5, {}, TypeError, "source"),
        ({**ARRAYS, 5: 1}, {}, TypeError, "arrays: names"),
        ({**ARRAYS, "codes": np.zeros((60, 5))}, {}, ValueError, "arrays: codes"),
        ({**ARRAYS, "ood_far_codes": np.zeros(40)}, {}, ValueError, "arrays: ood_far_codes"),
        ({**ARRAYS, "logits": [[1.0, 2.0], [1.0]]}, {}, ValueError, "arrays: logits"),
        ({**ARRAYS, "logits": None}, {}, ValueError, "arrays: logits"),
    ],
)
def test_an_argument_without_meaning_is_refused_by_name(source, options, error, argument):
    with pytest.raises(error, match=f"^{argument} "):
        score(source, **options)


def test_options_without_meaning_are_refused_before_anything_is_scored(rng, tmp_path):
    np.savez(tmp_path / "mine.npz", **small(rng))
    for option in (["--seeds", 99], ["--profile", "gpu"], ["--published", tmp_path]):
        done = bench("score", tmp_path / "mine.npz", "--method", "energy", *option)
        assert done.exit_code == 2 and option[0][2:] in done.stderr and not done.stdout
    done = bench("score", "mnist", tmp_path / "mine.npz", "--name", "other")
    assert done.exit_code == 2 and "name" in done.stderr and not done.stdout
    done = bench("import", "mnist", "--out", tmp_path)
    assert done.exit_code == 2 and "'mnist'" in done.stderr


@pytest.mark.parametrize("option", ["name", "suite", "profile"])
def test_rows_of_arrays_stay_below_the_folder_of_results(rng, tmp_path, option):
    np.savez(tmp_path / "mine.npz", **small(rng))
    with pytest.raises(ValueError, match=f"^{option} must be of letters"):
        score(tmp_path / "mine.npz", **{"suite": "mine", option: "../x"}, out=tmp_path / "out")
    for name in ("../x", "..", ""):
        options = {"--suite": "mine", f"--{option}": name, "--out": tmp_path / "out"}
        done = bench(
            "import", tmp_path / "mine.npz", *(of for pair in options.items() for of in pair)
        )
        assert done.exit_code == 2 and option in done.stderr
    assert sorted(tmp_path.rglob("*")) == [tmp_path / "mine.npz"]


def test_the_arrays_of_a_file_join_the_table_of_a_suite(published, tmp_path, monkeypatch):
    theirs = Predictions.read(scoring.find_predictions("mnist", "smoke", None, published)[0])
    arrays = {"logits": theirs.arrays["test"]["logits"], "labels": theirs.arrays["test"]["y"]}
    arrays |= {f"ood_{o}_logits": theirs.arrays[f"ood/{o}"]["logits"] for o in OOD}
    np.savez(tmp_path / "mine.npz", **arrays)
    options = ["--suite", "mnist", "--profile", "smoke", "--published", published]
    done = bench("import", tmp_path / "mine.npz", "--title", "Mine", *options, "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    assert "Seeds 10, but seeds 0 of mine.\n" in done.stdout
    assert re.search(r"→ +\d+  mine ", done.stdout) and " max-softmax " in done.stdout
    (row,) = load_rows("mnist", out=tmp_path)
    (bare,) = (r for r in load_rows("mnist", out=published) if r["method"] == "max-softmax")
    assert row["metrics"] == pytest.approx(bare["metrics"], abs=1e-6)
    beside = ["table", "mnist", "--out", tmp_path, "--published", published]
    lines = [*csv.DictReader(io.StringIO(bench(*beside, "--csv").stdout))]
    aurocs = {of["method"]: of["mean"] for of in lines if of["metric"] == "auroc"}
    assert {"mine", "max-softmax", "ddu"} <= aurocs.keys()
    assert float(aurocs["mine"]) == pytest.approx(float(aurocs["max-softmax"]), abs=1e-6)
    for form in ("--latex", "--markdown", "--no-trivial"):
        done = bench(*beside, form)
        assert "Mine" in done.stdout and "Max softmax" in done.stdout, done.stderr
    monkeypatch.delenv("DIPEDL_BENCH", raising=False)
    monkeypatch.chdir(tmp_path)  # where no results are by default
    alone = ["table", "mnist", "--no-trivial"]
    expected = bench(*alone, "--out", published)
    done = bench(*alone, "--published", published)
    assert done.exit_code == 0 and done.stdout == expected.stdout != "", done.stderr
    done = bench(*beside[:-1], tmp_path / "empty", "--csv")
    assert done.exit_code == 2 and str(tmp_path / "empty") in done.stderr
    rows = Store(published, "mnist", "smoke").rows_file
    assert bench("merge", rows, "--out", tmp_path).exit_code == 0
    table = bench("table", "mnist", "--out", tmp_path, "--no-trivial", "--json")
    assert {of["title"] for of in json.loads(table.stdout)["methods"]} >= {"Mine", "DDU"}
    for change, message in (
        ({"labels": np.roll(arrays["labels"], 1)}, "labels must be those of the test rows of 'mn"),
        ({"ood_svhn_logits": arrays["logits"]}, "unknown OOD set 'svhn'"),
        ({"ood_kmnist_logits": arrays["logits"][:9]}, "ood/kmnist has 9 rows, the rows of suite"),
    ):
        with pytest.raises(ValueError, match=message):
            score(arrays | change, suite="mnist", profile="smoke", published=published)
    fewer = {key: of for key, of in arrays.items() if "inverted" not in key}
    with pytest.warns(UserWarning, match=r"OOD sets \['omniglot_inverted'\] of suite 'mnist' are"):
        (row,) = score(fewer, suite="mnist", profile="smoke", published=published)
    (line,) = (
        of
        for of in bench_table([*load_rows("mnist", out=published), row]).lines
        if of.name == "mine"
    )
    assert "auroc/far_ood" in line.cells and "auroc/near_ood" not in line.cells
    with pytest.warns(UserWarning, match="labels were not compared with those of 'mnist', for no"):
        score(arrays, suite="mnist", profile="smoke", published=tmp_path / "empty")
    many = {"labels": np.arange(10_000) % 10, "logits": np.zeros((10_000, 10))}
    with pytest.raises(ValueError, match=r"suite 'cifar10-resnet' 5000; pass .*halve_test_rows"):
        score(many, suite="cifar10-resnet")
    with pytest.raises(ValueError, match="suite 'defaults' crosses data sets"):
        score(arrays, suite="defaults")
    named = arrays | {"ood_mnist_logits": arrays["logits"]}
    with pytest.raises(ValueError, match="'mnist' is the known data of the suite, no OOD set"):
        score(named, suite="mnist", profile="cpu", published=published)


def test_a_suite_of_ones_own_has_a_table(rng, tmp_path):
    np.savez(tmp_path / "mine.npz", **small(rng))
    done = bench("import", tmp_path / "mine.npz", "--name", "mine", "--out", tmp_path)
    assert done.exit_code == 0, done.stderr
    shown = float(re.search(r"→ +1  mine +(?:\S+ +){3}(\S+)", done.stdout)[1])
    (row,) = load_rows("mine", out=tmp_path)
    aurocs = [of for name, of in row["metrics"].items() if name.startswith("auroc/")]
    assert shown == pytest.approx(np.mean(aurocs), abs=5e-5)
    named = ["--name", "mine", "--method", "DDU", "--method", "max-softmax"]
    done = bench("score", tmp_path / "mine.npz", *named, "--out", tmp_path)
    assert re.findall(r"→ +(\d)  ", done.stdout) == ["1", "2"], done.stderr
    methods = {row["method"]: row["title"] for row in load_rows("mine", out=tmp_path)}
    assert methods.keys() == {"mine", "ddu", "max-softmax"}
    assert methods["max-softmax"] == "Max softmax, fitted on calibration rows"


def test_seeds_of_one_name_are_one_method_and_the_latest_arrays_count(rng, tmp_path):
    made = {}
    for seed in (1, 2, 3):
        np.savez(tmp_path / "s.npz", **small(rng), seed=seed)
        (made[seed],) = score(tmp_path / "s.npz", name="multi", out=tmp_path)
        score(tmp_path / "s.npz", name="multi", methods=["Energy", Margin], out=tmp_path)
    for line in bench_table(load_rows("multi", out=tmp_path)).lines:
        assert line.seeds == (1, 2, 3), line.name
    np.savez(tmp_path / "s.npz", **small(rng, shift=1.0), seed=2)
    with pytest.warns(UserWarning, match="row of 'multi', seed 2, that was in .* is replaced"):
        (made[2],) = score(tmp_path / "s.npz", name="multi", out=tmp_path)
    with pytest.warns(UserWarning, match="row of 'energy', seed 2"):
        (energy,) = score(tmp_path / "s.npz", name="multi", methods=["Energy"], out=tmp_path)
    rows = load_rows("multi", out=tmp_path)
    assert len(rows) == 9
    kept = {(row["method"], row["seed"]): row["metrics"] for row in rows}
    assert all(kept["multi", seed] == row["metrics"] for seed, row in made.items())
    assert kept["energy", 2] == energy["metrics"]


@pytest.mark.filterwarnings("ignore:.*(turned round|is replaced):UserWarning")
def test_a_source_that_is_changed_back_has_its_row_in_the_table(rng, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    template = "from test_predictions import Margin as M\nclass Own(M):\n  sign = {}\n"
    arrays = small(rng)
    shown = []
    for sign in (-1.0, 1.0, -1.0):
        (tmp_path / "own_margin.py").write_text(template.format(sign))
        sys.modules.pop("own_margin", None)
        importlib.invalidate_caches()
        score(arrays, methods=["own_margin:Own"], out=tmp_path)
        (line,) = bench_table(load_rows("mine", out=tmp_path)).lines
        shown.append(line.cells["auroc/far"].mean)
    sys.modules.pop("own_margin", None)
    assert shown[0] == shown[2] == pytest.approx(1 - shown[1])


def named(name, module="elsewhere"):
    """A class of one's own with this name, in a module that holds no other."""
    made = type(name, (Margin,), {"__module__": module})
    sys.modules[module] = types.SimpleNamespace(**{name: made}, __name__=module)
    return made


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ("mnist", {"methods": [Margin, "Margin"]}, "'Margin' of 'test_.*:Margin' and of 'else.*:M"),
        ("mnist", {"methods": ["energy", "edl"]}, "'edl' of method 'edl' of suite 'mnist' and of"),
        (None, {"methods": ["energy", "knn", "knn"]}, "'knn' of '.*' and of 'elsewhere:knn'"),
        (None, {"methods": ["mine"]}, "'mine' of the arrays themselves and of 'elsewhere:mine'"),
        (None, {"name": "max-softmax", "suite": "mnist"}, "name 'max-softmax' is that of method"),
    ],
)
def test_no_method_takes_the_line_of_another(published, rng, monkeypatch, source, options, message):
    *others, last = options.get("methods", [None])
    if last:
        monkeypatch.setitem(sys.modules, "elsewhere", None)
        options = {**options, "methods": [*others, named(last)]}
    arrays = {k: of for k, of in small(rng).items() if "far" not in k}
    if source or "suite" in options:
        options = {"profile": "smoke", "published": published, **options}
    with pytest.raises(ValueError, match=message):
        score(source or arrays, **options)


def test_rows_of_a_run_are_not_replaced(published, rng, tmp_path):
    root = shutil.copytree(published, tmp_path / "out")
    rows = load_rows("mnist", out=root)
    suite = {"suite": "mine", "profile": "smoke"}
    Store(root, *suite.values()).append({**rows[0], **suite, "method": "run"})
    with pytest.raises(ValueError, match="has rows of a run of 'run', which this row would join"):
        score(small(rng), name="run", **suite, out=root)


def changed(**changes):
    arrays = {**small(np.random.default_rng(0)), **changes}
    return {key: of for key, of in arrays.items() if of is not None}


HOLE, LONG = np.full((60, 3), np.nan), np.full((60, 3), 0.5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": None}, "arrays: labels is missing"),
        ({"label": np.zeros(60)}, "unknown array 'label', did you mean 'labels'"),
        ({"labels": np.zeros(59)}, "labels has 59 rows, the outputs of the set 60"),
        ({"labels": np.arange(60)}, "labels must be class numbers 0..2, .* got 3 in row 3"),
        ({"labels": np.zeros(60) - 1}, "labels must be class numbers 0..2.*got -1.0 in row 0"),
        ({"labels": np.zeros(60) + 0.5}, "labels must be class numbers"),
        ({"logits": None}, "logits or proba must be there, one of them; neither is"),
        ({"proba": LONG}, "logits or proba must be there, one of them; both are there"),
        ({"logits": HOLE}, "logits must be finite, got nan in row 0, column 0"),
        ({"logits": np.zeros(60)}, r"logits must be numbers with 2 axes.*shape \(60,\)"),
        ({"logits": np.array([["a"] * 3] * 60)}, "logits must be numbers with 2 axes"),
        ({"labels": np.array(["a"] * 60)}, r"labels must be class numbers, .*column.*<U1"),
        ({"features": np.zeros((50, 5))}, "features has 50 rows"),
        (
            {"features": None, "head_weight": None, "head_bias": None},
            "^arrays: features is missing, for .*_features",
        ),
        ({"ood_far_features": None}, "ood_far_features is missing, for features is there"),
        ({"ood_far_logits": np.zeros((40, 2))}, "ood_far_logits has 2 columns, logits 3"),
        ({"ood_test_logits": HOLE}, "an OOD set may not have the name of known rows"),
        ({"ood_logits": HOLE}, "'ood_logits' must name its set"),
        ({"ood_far_labels": np.zeros(40)}, "unknown array 'ood_far_labels'"),
        ({"calibration_labels": None}, "calibration_labels is missing, to fit methods on"),
        ({"uncertainty": np.zeros(60)}, "ood_far_uncertainty is missing"),
        ({"head_weight": np.zeros((5, 3))}, "head_weight and head_bias must have the shapes"),
        ({"head_weight": None}, "head_weight is missing, for head_bias is there"),
        ({"head_weight": 2 * np.eye(5)[:3]}, "head_weight and head_bias must .* makes logits of"),
        ({"head_bias": np.ones(3)}, "head_bias must be the layer .* but differ by up to 1; pass"),
        ({"ood_far_logits": np.ones((40, 3))}, "makes ood_far_logits of ood_far_features"),
        ({"seed": 1.5}, "seed must be an integer >= 0"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        score(changed(**changes))


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_a_last_layer_may_be_rounded_and_stand_beside_probabilities(rng, kind):
    arrays = small(rng, p=64)
    weight, bias = rng.normal(size=(3, 64)), 10 * rng.normal(size=3)
    for start in ("", "calibration_", "ood_far_"):
        features = arrays[f"{start}features"] = 10 * rng.normal(
            size=(40 if start[:3] == "ood" else 60, 64)
        )
        arrays[f"{start}logits"] = features @ weight.T + bias
    arrays |= {"head_weight": weight, "head_bias": bias}
    rounded = {k: of if "labels" in k else of.astype(kind) for k, of in arrays.items()}
    assert Predictions.from_arrays(rounded).head[0].shape == (3, 64)
    proba = {
        k.replace("logits", "proba"): softmax(of, axis=1) if "logits" in k else of
        for k, of in arrays.items()
    }
    assert Predictions.from_arrays(proba).head[1] == pytest.approx(bias)
    with pytest.raises(ValueError, match="makes proba of features"):
        Predictions.from_arrays(proba | {"head_bias": -bias})


def test_probabilities_that_do_not_sum_to_one_are_refused():
    arrays = {"proba": LONG, "labels": np.arange(60) % 3}
    with pytest.raises(ValueError, match=r"proba must be probabilities .* with sum 1.5; pass raw"):
        score(arrays)
    with pytest.raises(ValueError, match="calibration_logits and calibration_labels are missing"):
        score({**arrays, "proba": LONG / 1.5}, methods=["MaxSoftmax"])


class Crash(Margin):
    def uncertainty(self, features, logits):
        return {}["absent"]


@pytest.mark.parametrize(
    ("method", "changes", "message"),
    [
        ("Energy", {"logits": None}, "'energy' cannot be .*needs logits, .*pass logits"),
        ("DDU", {"features": None}, "'ddu' cannot be .*needs features, .*pass features"),
        ("ViM", {}, "'vim' cannot be .*last layer.*pass features, head_weight and head_bias"),
        ("DDU", {"rows": 2}, "'ddu' cannot be fitted on the calibration rows: "),
        (Crash, {}, r"'Crash' cannot be scored: KeyError: absent \(line \d+ of .*test_predictions"),
    ],
)
def test_a_method_that_fails_is_named_with_what_it_needs(rng, method, changes, message):
    """A traceback, or the bare message of a KeyError, told neither the method nor the array."""
    labels = np.arange(60) % 3
    of = {"logits": rng.normal(size=(60, 3)), "features": rng.normal(size=(60, 5))}
    if changes.get("rows"):
        of, labels = {name: rows[:2] for name, rows in of.items()}, labels[:2]
    of = {name: rows for name, rows in of.items() if name not in changes}
    if "logits" not in of:
        of["proba"] = np.full((60, 3), 1 / 3)
    arrays = {**of, "labels": labels}
    arrays |= {f"calibration_{name}": rows for name, rows in arrays.items()}
    with pytest.raises(ValueError, match=message):
        score(arrays, methods=[method])


@pytest.mark.parametrize(("content", "error"), [(None, FileNotFoundError), (b"no zip", ValueError)])
def test_a_file_that_cannot_be_read_is_refused(tmp_path, content, error):
    if content:
        (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(error, match=r"x\.npz"):
        score(tmp_path / "x.npz")
