"""``dipedl compare``: two models on the same rows, against scores, scipy and simulation."""

import json
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import accuracy_score, brier_score_loss

pytest.importorskip("safetensors")

from dipedl.apps.table.compare import compare, mean_difference, paired_share
from dipedl.apps.table.errors import UserError
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.table_model import read_model, save_model
from passengers import passengers


def keep(folder, name, table, **request):
    table.to_csv(folder / f"{name}.csv", index=False)
    order = FitRequest("survived", model="linear", drop=["passenger"], **request)
    save_model(fit_table(open_table(folder / f"{name}.csv"), order).model, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A model of other rows, and one of other columns, classes and rate too."""
    folder, later = tmp_path_factory.mktemp("models"), passengers(200, seed=5)
    lost = later.assign(survived=later["survived"].mask(later["port"] == "Q", "lost"))
    other = keep(folder, "other", lost.drop(columns="port"), false_alarms=0.02)
    return {"new": keep(folder, "new", later), "other": other}


@pytest.fixture
def test_rows(tmp_path):
    path = tmp_path / "test.csv"
    rows = passengers(200, seed=6).assign(age=lambda t: t["age"].mask(t.index < 20, 400.0))
    rows.assign(survived=rows["survived"].mask(rows.index >= 190)).to_csv(path, index=False)
    return path


def compared(run, old, new, data, *options):
    done = run("compare", old, new, data, "--json", "-q", *options)
    assert done.exit_code in (0, 3), done.output
    return json.loads(done.stdout)


def test_numbers_are_those_of_the_answers_of_each_model(run, kept, models, test_rows, tmp_path):
    old, out = kept / "model.dipedl", tmp_path / "changes.csv"
    found = compared(run, old, models["new"], test_rows, "--out", out)
    answers = []
    for model in (old, models["new"]):
        run("score", model, test_rows, "--out", tmp_path / "a.csv", "-q")
        answers.append(pd.read_csv(tmp_path / "a.csv"))
    truth = pd.read_csv(test_rows)["survived"]
    known = truth.notna()
    one, other = answers
    assert found["labels_changed"] == (one["label"] != other["label"]).sum() > 0
    assert found["flags_raised"] == (other["flagged"] & ~one["flagged"]).sum()
    assert found["flags_dropped"] == (one["flagged"] & ~other["flagged"]).sum()
    for which, table in zip(("old", "new"), answers, strict=True):
        y, label = truth[known], table["label"][known]
        assert found["scores"]["accuracy"][which] == pytest.approx(accuracy_score(y, label))
        brier = 2 * brier_score_loss(y == "yes", table["p_yes"][known])
        assert found["scores"]["brier"][which] == pytest.approx(brier)
        assert found["scores"]["false_alarms"][which] == table["flagged"][known].mean()
    lines, moved = pd.read_csv(out), (one["p_yes"] - other["p_yes"]).abs()
    np.testing.assert_allclose(lines["change"], moved.sort_values(ascending=False))
    assert lines["row"].tolist()[0] == moved.argmax() + 1
    assert found["carried"] and not found["same_reference"]
    plain = run("compare", old, models["new"], test_rows, "-q")
    assert f"row {moved.argmax() + 1}: " in plain.output and "begins anew" in plain.output


def test_a_model_agrees_with_itself_and_its_monitor_goes_on(run, kept):
    found = compared(run, kept / "model.dipedl", kept / "model.dipedl", kept / "passengers.csv")
    assert found["labels_changed"] == found["flags_raised"] == found["flags_dropped"] == 0
    assert found["same_reference"] and found["seen"] == [1.0, 1.0]


def test_models_of_other_columns_classes_and_rates(run, kept, models, test_rows):
    rows = pd.read_csv(test_rows)
    rows.loc[:9, "survived"], rows.loc[10:14, "survived"] = "lost", "ghost"
    rows.to_csv(test_rows, index=False)
    old = kept / "model.dipedl"
    found = compared(run, old, models["other"], test_rows)
    assert found["only_old_columns"] == ["port"] and found["only_new_classes"] == ["lost"]
    assert found["rates"] == [0.05, 0.02] and not found["carried"]
    assert {"flagged_at_old_rate", "unknown_flagged"} < set(found["scores"])
    sizes = {name: score["rows"] for name, score in found["scores"].items()}
    assert (sizes["accuracy"], sizes["false_alarms"], sizes["unknown_flagged"]) == (185, 175, 5)
    plain = run("compare", old, models["other"], test_rows, "-q")
    assert "fit the new one with --false-alarms 0.05" in plain.output
    assert "only the new model knows lost" in plain.output
    # The other way round each difference has the other sign.
    back = compared(run, models["other"], old, test_rows)
    there, here = (one["scores"]["brier"]["difference"] for one in (back, found))
    assert there["low"] == pytest.approx(-here["high"])


def test_without_classes_labels_and_flags_are_compared(run, kept, models, test_rows):
    pd.read_csv(test_rows).drop(columns="survived").to_csv(test_rows, index=False)
    found = compared(run, kept / "model.dipedl", models["new"], test_rows)
    assert set(found["scores"]) == {"flagged"} and found["rows"] == 200


def test_what_cannot_be_compared_is_named(kept, models, test_rows):
    old, table = read_model(kept / "model.dipedl"), open_table(test_rows)
    strange = copy(old.classifier)
    strange.classes_ = np.array(["here", "there"])
    pd.read_csv(test_rows).drop(columns="port").to_csv(test_rows, index=False)
    for new, named in [
        (replace(old, target="sex"), "predicts 'survived' and the new one 'sex'"),
        (replace(old, classifier=strange), "the old one knows no, yes, the new one here, there"),
        (replace(old, facts=old.facts | {"images": ""}), "the new model answers images"),
        (read_model(models["other"]), "the old model cannot answer: .* lacks the column 'port'"),
    ]:
        with pytest.raises(UserError, match=named):
            compare(old, new, open_table(test_rows), table)


def test_rows_that_a_model_cannot_read_are_left_out(run, kept, models, test_rows):
    rows = pd.read_csv(test_rows).astype({"fare": object})
    rows.loc[3, "fare"] = "much"
    rows.to_csv(test_rows, index=False)
    done = run("compare", kept / "model.dipedl", models["new"], test_rows, "--json", "-q")
    assert done.exit_code == 3 and json.loads(done.stdout)["refused"] == [1, 1]
    assert json.loads(done.stdout)["rows"] == 199


def test_the_interval_of_a_difference_of_shares_holds_the_truth():
    """Of 2,000 tables of 60 pairs, of which few differ; also where none does."""
    rng, held = np.random.default_rng(0), 0
    shares = [0.8, 0.1, 0.04, 0.06]  # both right, neither, old alone, new alone
    for _ in range(2000):
        pair = rng.choice(4, 60, p=shares)
        d = paired_share(np.isin(pair, [0, 2]), np.isin(pair, [0, 3])).difference
        held += d.low <= 0.02 <= d.high
    assert 0.94 < held / 2000 < 0.99
    same = paired_share(np.ones(50, bool), np.ones(50, bool)).difference
    assert same.low < same.value == 0 < same.high


def test_the_interval_of_a_difference_of_means_is_that_of_scipy():
    old, new = np.random.default_rng(1).random((2, 30))
    found, expected = mean_difference(new - old), stats.ttest_rel(new, old).confidence_interval()
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert mean_difference(np.ones(1)) is None
