"""Running a crossed suite: what is written, what is done again, and what survives."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tiny_crossed import TINY_CROSSED

from dipedl_bench import load_rows, load_suite, run
from dipedl_bench.datasets.splits import make_splits
from dipedl_bench.results.store import Store
from dipedl_bench.running.methods import run_methods
from dipedl_bench.running.runner import StoppedError
from dipedl_bench.running.training import train_part
from dipedl_bench.spec.plan import plan


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "tiny.toml"
    file.write_text(TINY_CROSSED)
    return file


def run_cell(path, out, profile="smoke", methods=None, index=0, deadline=None, say=lambda _: None):
    """Do all parts of a cell here; gives the cell, and why a method has no row."""
    suite = load_suite(path)
    cell = plan(suite, profile, path.name, methods=methods)[index]
    store = Store(out, suite.name, profile)
    for part in cell.parts[:-1]:
        if not store.has_arrays(*cell.key(part)):
            train_part(cell, part, store, deadline, say)
    return cell, run_methods(cell, store, deadline, say)


def test_a_run_writes_rows_and_the_same_call_adds_none(path, tmp_path):
    out, said = tmp_path / "out", []
    options = {"datasets": ["flowers"], "seeds": [1], "out": out}
    first = run(path, progress=said.append, **options)
    assert (first.present, first.failed, first.left) == (0, {}, [])
    assert any(line.startswith("seed 1  methods flowers/logistic: max-softmax: ") for line in said)
    rows = load_rows("tiny-crossed", "smoke", out)
    assert first.rows == rows
    names = ["max-softmax", "default", "default:log_density", "energy", "temperature", "chain"]
    assert [row["method"] for row in rows] == names
    again = run(path, **options)
    assert (again.rows, again.present) == ([], 6)
    assert load_rows("tiny-crossed", "smoke", out) == rows


def test_the_bare_classifier_is_the_one_scikit_learn_fits(path, tmp_path):
    cell, failed = run_cell(path, tmp_path, methods=["max-softmax"])
    assert failed == {}
    (row,) = load_rows("tiny-crossed", out=tmp_path)
    splits = make_splits(cell.parts[-1].config["data"], cell.seed)
    X, y = splits.X, splits.y
    model = make_pipeline(StandardScaler(), LogisticRegression(random_state=1)).fit(
        np.concatenate([X["train"], X["validation"]]), np.concatenate([y["train"], y["validation"]])
    )
    bare = {split: model.predict_proba(X[split]) for split in ("test", "ood/versicolor")}
    u = np.concatenate([1 - P.max(axis=1) for P in bare.values()])
    unknown = np.repeat([0, 1], [len(P) for P in bare.values()])
    brier = np.square(bare["test"] - np.eye(2)[y["test"]]).sum(axis=1).mean()
    assert row["metrics"]["auroc/versicolor"] == pytest.approx(roc_auc_score(unknown, u))
    assert row["metrics"]["brier_id"] == pytest.approx(brier)
    ood = np.square(bare["ood/versicolor"] - 0.5).sum(axis=1).mean()
    assert row["metrics"]["brier_ood/versicolor"] == pytest.approx(ood)
    assert row["n"] == {"train": 70, "test": 30, "ood/versicolor": 50}


def test_a_row_has_its_receipt(path, tmp_path):
    run_cell(path, tmp_path, index=1)  # wines, logistic
    rows = {row["method"]: row for row in load_rows("tiny-crossed", out=tmp_path)}
    row = rows["default"]
    assert {"versions", "commit", "device", "time", "load"} <= set(row)
    assert (row["dataset"], row["classifier"], row["seed"]) == ("wines", "logistic", 1)
    assert row["config"]["method"]["kind"] == "total"
    assert row["config"]["method"]["settings"]["normalizer"]["class"] == "ZScore"
    assert (
        set(row["seconds"])
        == set(row["cpu_seconds"])
        == {"train", "classifier", "predict", "score"}
    )
    assert row["seconds"]["train"] >= row["seconds"]["classifier"] > 0
    low, high = row["intervals"]["auroc/class_1"]
    assert low <= row["metrics"]["auroc/class_1"] <= high
    same = ("accuracy", "brier_id", "nll", "brier_ood/class_1")
    other = rows["default:log_density"]["metrics"]
    assert all(other[name] == row["metrics"][name] for name in same)


def test_a_refusal_is_a_row_and_an_error_is_not(path, tmp_path):
    cell, failed = run_cell(path, tmp_path, index=2)
    assert (cell.parts[-1].name, failed) == ("wines/trees", {})
    rows = {row["method"]: row for row in load_rows("tiny-crossed", out=tmp_path)}
    assert "probabilities do not determine logits" in rows["energy"]["refused"]
    assert rows["energy"]["metrics"] == {}
    path.write_text(path.read_text().replace("may_refuse = true", ""))
    _, failed = run_cell(path, tmp_path / "other", methods=["energy"], index=2)
    assert failed["energy"].startswith("TypeError: ")


def test_a_network_is_trained_once_and_restored_to_the_bit(path, tmp_path):
    out, said = tmp_path / "out", []
    cell, failed = run_cell(path, out, "net", ["max-softmax"], say=said.append)
    assert failed == {} and any(line.startswith("epoch 2/2") for line in said)
    said.clear()
    both = ["max-softmax", "default"]
    assert run_cell(path, out, "net", both, say=said.append)[1] == {}
    assert not any("epoch" in line for line in said)
    before = load_rows("tiny-crossed", out=out)
    store = Store(out, "tiny-crossed", "net")
    assert not store.checkpoint(*cell.key(cell.parts[0])).parent.exists()
    store.rows_file.unlink()
    run_cell(path, out, "net", both)
    again = load_rows("tiny-crossed", out=out)
    assert [row["metrics"] for row in again] == [row["metrics"] for row in before]


def test_methods_see_the_network_frozen_and_calibrate_on_its_validation_rows(path, tmp_path):
    run_cell(path, tmp_path, "net", ["max-softmax", "default"])
    rows = {row["method"]: row for row in load_rows("tiny-crossed", out=tmp_path)}
    assert rows["default"]["n"]["train"] == 200
    # A density of ID statistics: the classifier's labels stay, nearly always.
    both = [rows[name]["metrics"]["accuracy"] for name in ("max-softmax", "default")]
    assert both[0] == pytest.approx(both[1], abs=0.05)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"datasets": ["wine"]}, "unknown data set 'wine', did you mean 'wines'"),
        ({"methods": ["defalt"]}, "unknown method 'defalt', did you mean 'default'"),
        ({"classifiers": ["tree"]}, "unknown classifier 'tree', did you mean 'trees'"),
        ({"profile": "smok"}, "unknown profile 'smok', did you mean 'smoke'"),
        ({"methods": []}, "methods must name at least one of"),
        ({"budget": float("nan")}, "budget must be > 0 seconds, got nan"),
    ],
)
def test_bad_arguments_are_named_before_anything_begins(path, tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        run(path, out=tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_data_that_cannot_be_had_stops_the_run(path, tmp_path):
    path.write_text(path.read_text().replace('ood = ["versicolor"]', 'ood = ["versicolour"]'))
    with pytest.raises(StoppedError, match="did you mean 'versicolor'"):
        run(path, datasets=["flowers"], seeds=[1], out=tmp_path / "out")


def test_data_that_cannot_be_had_leave_the_other_data_sets(path, tmp_path):
    path.write_text(path.read_text().replace('ood = ["versicolor"]', 'ood = ["versicolour"]'))
    result = run(path, methods=["max-softmax"], seeds=[1], out=tmp_path / "out")
    assert {row["dataset"] for row in result.rows} == {"wines"}
    assert result.failed and all("did you mean 'versicolor'" in w for w in result.failed.values())
