"""A gap in a column that had none in the fit: answered, flagged, and no other row suffers."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.score import explain_rows
from dipedl.apps.table.table_model import read_model, save_model

SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("forest", "mlp")]


@pytest.mark.parametrize("name", ["linear", "boosting", *SLOW])
def test_first_gaps_among_numbers_are_flagged(name, run, tmp_path, rng):
    made = pd.DataFrame(rng.normal(size=(150, 3)), columns=["a", "b", "c"])
    made["y"] = np.where(made["a"] + 0.2 * made["b"] > 0, "yes", "no")
    made.to_csv(tmp_path / "data.csv", index=False)
    save_model(
        fit_table(open_table(tmp_path / "data.csv"), FitRequest("y", model=name)).model,
        tmp_path / "m",
    )
    (tmp_path / "whole.csv").write_text("a,b,c\n0.4,-0.1,0.2\n-0.5,0.3,0.1\n")
    (tmp_path / "gaps.csv").write_text("a,b,c\n0.4,-0.1,0.2\n,,\n-0.5,0.3,0.1\n0.4,,0.2\n")
    for table in ("whole", "gaps"):
        out = ("--out", tmp_path / f"{table}.out.csv", "--quiet")
        assert run("score", tmp_path / "m", tmp_path / f"{table}.csv", *out).exit_code == 0
    whole, found = (pd.read_csv(tmp_path / f"{table}.out.csv") for table in ("whole", "gaps"))
    assert found["flagged"].tolist() == [False, True, False, True]
    assert (found["vacuity"][[1, 3]] > 0.99).all()
    assert found["reason"][3] == "never in the training data: b is missing"
    of_others = ["label", "p_no", "p_yes", "vacuity", "p_value"]
    same = found.loc[[0, 2], of_others].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, whole[of_others], rtol=1e-12)
    cards, refused = explain_rows(
        read_model(tmp_path / "m"), open_table(tmp_path / "gaps.csv"), 4, 2
    )
    assert [len(one.card.news) for one in cards] == [0, 3, 0, 1] and not refused


def test_a_first_gap_beside_text_and_other_gaps_is_flagged(kept):
    model = read_model(kept / "model.dipedl")
    new = pd.read_csv(kept / "new.csv")[["deck", "sex", "age", "fare", "port"]]
    X = new.astype({"sex": "category", "port": "category", "deck": float})[:2]
    X["age"] = [30.0, np.nan]
    first = X.assign(fare=np.nan)
    assert model.classifier.predict_ood(X).tolist() == [1, 1]
    assert model.classifier.predict_ood(first).tolist() == [-1, -1]
