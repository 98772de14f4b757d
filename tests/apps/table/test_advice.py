"""What a report advises, by what was found."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

import dipedl
from dipedl.apps.table import evaluate, fit
from dipedl.apps.table.evaluate import next_steps
from dipedl.apps.table.page import render
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.table_model import read_model
from passengers import passengers
from weekly import sample_of, sample_of_rows


@pytest.fixture(scope="module")
def found(kept):
    model = read_model(kept / "model.dipedl")
    return evaluate.evaluate(model, open_table(kept / "new.csv"))


def test_both_calibration_errors_are_those_of_the_rows(kept, found):
    clf, y = found.model.classifier, found.truth
    assert found.scores["ece"] == dipedl.metrics.ece(y, clf.predict_proba(found.test.X))
    bare = dipedl.metrics.ece(y, clf.classifier_proba(found.test.X))
    assert found.scores["classifier_ece"] == bare
    held, told = clf.evidence_.held_out_, found.model.facts["held_out"]
    full = clf.evidence_.calibrator_.transform(held.bare_proba)
    assert told["classifier_ece"] == dipedl.metrics.ece(held.labels, full)
    mean = np.asarray(clf.held_out_dirichlet().mean)
    assert told["ece"] == dipedl.metrics.ece(held.labels, mean)


@pytest.mark.parametrize(
    ("known", "told"), sample_of_rows([(240, True), (30, True), (0, False)], 0, 2)
)
def test_rows_of_the_fit_are_noticed(kept, tmp_path, known, told):
    tables = [pd.read_csv(kept / "passengers.csv")[:known], passengers(60, seed=4)]
    pd.concat(tables).to_csv(tmp_path / "mixed.csv", index=False)
    model, table = read_model(kept / "model.dipedl"), open_table(tmp_path / "mixed.csv")
    found = evaluate.evaluate(model, table)
    assert found.seen == known / (known + 60)
    assert ("The fit was given" in next_steps(found)[0]) == told


def test_chance_in_few_rows_is_no_mistake_of_the_model(kept, tmp_path):
    """Classes drawn by the answers themselves are what these say, though their ECE is not 0."""
    model, found = read_model(kept / "model.dipedl"), []
    p = model.classifier.predict_proba(passengers(60, seed=7))[:, 1]
    for seed in (0, 1, 2):
        yes = np.random.default_rng(seed).random(60) < p
        for table in (yes, p < 0.5):
            rows = passengers(60, seed=7).assign(survived=np.where(table, "yes", "no"))
            rows.to_csv(tmp_path / "rows.csv", index=False)
            one = evaluate.evaluate(model, open_table(tmp_path / "rows.csv"))
            found.append(any("confidence is off" in step for step in next_steps(one)))
    assert found == [False, True] * 3


def test_one_flagged_row_in_a_few_is_no_change(kept, tmp_path):
    model, rows = read_model(kept / "model.dipedl"), passengers(5, seed=3)
    for flagged, told in ((1, False), (4, True)):
        rows.assign(fare=np.where(np.arange(5) < flagged, 1e4, rows.fare)).to_csv(
            tmp_path / "rows.csv", index=False
        )
        found = evaluate.evaluate(model, open_table(tmp_path / "rows.csv"))
        assert found.test.answers.flagged.sum() == flagged
        assert any("differ from those of the fit" in step for step in next_steps(found)) == told


@pytest.mark.parametrize("n", sample_of([3, 60], 0))
def test_a_page_of_few_rows_has_its_curves(kept, tmp_path, n):
    passengers(n, seed=11).to_csv(tmp_path / "few.csv", index=False)
    model, table = read_model(kept / "model.dipedl"), open_table(tmp_path / "few.csv")
    page = render(evaluate.evaluate(model, table), "few.csv", "model.dipedl")
    curves = page[page.index("Errors among the surest") :].split("</svg>")[0]
    for color in ("--c0", "--c1", "--c2"):
        assert f"var({color})" in curves


def test_answers_far_from_the_data_count_as_given_though_all_classes_tie(tmp_path):
    """Their probabilities are the prior's: the largest of equal ones is no answer."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=300)
    rows = pd.DataFrame({"x": x, "z": rng.normal(size=300), "y": np.where(x > 0, "b", "a")})
    rows.to_csv(tmp_path / "fit.csv", index=False)
    far = rows.assign(x=rows["x"] + 1e6, y="b")
    far.to_csv(tmp_path / "far.csv", index=False)
    order = fit.FitRequest("y", model="linear")
    model = fit.fit_table(open_table(tmp_path / "fit.csv"), order).model
    found = evaluate.evaluate(model, open_table(tmp_path / "far.csv"))
    np.testing.assert_array_equal(found.test.answers.proba, 0.5)
    assert (found.test.answers.labels == "b").all()
    assert found.scores["accuracy"] == 1 and found.scores["aurc"] == 0
    assert [line.right for line in found.trust if line.rows] == [1]
    assert [line.found for line in found.classes] == [1]
