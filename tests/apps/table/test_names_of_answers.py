"""Names of answers never stand for two things: classes called as answers are, bars in classes."""

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

from dipedl import DIPClassifier
from dipedl.apps.adapters import TableAnswers
from dipedl.apps.large import score
from dipedl.apps.spectra import classification, toy_spectra
from dipedl.apps.table.errors import UserError
from dipedl.apps.table.evaluate import evaluate
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.table_model import read_model, save_model
from dipedl.density import GDADensity
from weekly import sample_of

N = 150
#: Names of classes, and the columns of their probabilities.
CLASSES = {
    ("value", "value_"): {"value": "p_value__", "value_": "p_value_"},
    ("label", "set"): {"label": "p_label", "set": "p_set"},
    ("a", "b", "a|b"): {"a": "p_a", "b": "p_b", "a|b": "p_a|b"},
}
OWN = ["row", "label", "vacuity", "p_value", "flagged", "set", "reason"]


def table(classes):
    X = np.random.default_rng(0).normal(size=(N, 3))
    return pd.DataFrame(X, columns=list("xyz")).assign(
        target=np.asarray(classes)[X[:, : len(classes)].argmax(axis=1)]
    )


@pytest.fixture(scope="module", params=sample_of(CLASSES, 0, 2), ids=str)
def kept(request, tmp_path_factory):
    """A folder with data.csv, parts/ and m.dipedl; and the columns of the classes."""
    pytest.importorskip("safetensors")
    folder = tmp_path_factory.mktemp("names")
    made = table(request.param)
    made.to_csv(folder / "data.csv", index=False)
    (folder / "parts").mkdir()
    made.to_parquet(folder / "parts" / "data.parquet")
    learned = fit_table(open_table(folder / "data.csv"), FitRequest("target", model="linear"))
    save_model(learned.model, folder / "m.dipedl")
    return folder, CLASSES[request.param]


def check(found, model, folder, columns):
    X = pd.read_csv(folder / "data.csv")[list("xyz")]
    answers = model.classifier.answers(X)
    assert found.columns.is_unique
    np.testing.assert_array_equal(found["p_value"], answers.p_values)
    for c, name in enumerate(model.classes):
        np.testing.assert_allclose(found[columns[name]], answers.dirichlet.mean[:, c], rtol=1e-12)


@pytest.mark.parametrize("ending", sample_of(["csv", "parquet", "jsonl"], "csv"))
def test_a_table_of_answers_has_a_column_for_each_thing(ending, kept, run, tmp_path):
    folder, columns = kept
    out = tmp_path / f"a.{ending}"
    done = run("score", folder / "m.dipedl", folder / "data.csv", "--out", out)
    assert done.exit_code == 0, done.output
    read = {"csv": pd.read_csv, "parquet": pd.read_parquet}.get(
        ending, lambda path: pd.read_json(path, lines=True, precise_float=True)
    )
    found = read(out)
    assert sorted(found) == sorted([*OWN, *columns.values()])
    check(found, read_model(folder / "m.dipedl"), folder, columns)


def test_answers_in_parts_and_of_the_adapter_have_the_same_columns(kept, tmp_path):
    folder, columns = kept
    model = read_model(folder / "m.dipedl")
    score(folder / "m.dipedl", folder / "parts", tmp_path / "out")
    check(pd.read_parquet(tmp_path / "out" / "data.parquet"), model, folder, columns)
    X = pd.read_csv(folder / "data.csv")[list("xyz")]
    check(TableAnswers(model.classifier).predict(X), model, folder, columns)


def test_the_service_sends_the_same_columns(kept):
    testing = pytest.importorskip("starlette.testclient")
    import pyarrow as pa

    from dipedl.apps.serve import Models, Settings, create_app

    folder, columns = kept
    app = create_app(Models({"m": folder / "m.dipedl"}), Settings())
    frame = pd.read_csv(folder / "data.csv")[list("xyz")]
    sent = pa.BufferOutputStream()
    batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
    with pa.ipc.new_stream(sent, batch.schema) as writer:
        writer.write_batch(batch)
    with testing.TestClient(app, base_url="http://127.0.0.1") as client:
        stream = "application/vnd.apache.arrow.stream"
        body = sent.getvalue().to_pybytes()
        got = client.post("/v1/predict", content=body, headers={"content-type": stream})
        assert got.status_code == 200, got.text
        rows = {"rows": frame[:3].to_dict("records")}
        told = client.post("/v1/predict", json=rows).json()["answers"]
    found = pa.ipc.open_stream(got.content).read_all().to_pandas()
    check(found, read_model(folder / "m.dipedl"), folder, columns)
    for one, line in zip(told, found.to_dict("records"), strict=False):
        assert one["p_value"] == pytest.approx(line["p_value"])
        assert one["probabilities"] == pytest.approx({c: line[columns[c]] for c in columns})


def test_a_report_reads_probabilities_and_sets_of_the_right_class(kept):
    folder, _ = kept
    model = read_model(folder / "m.dipedl")
    found = evaluate(model, open_table(folder / "data.csv"))
    X, y = pd.read_csv(folder / "data.csv")[list("xyz")], pd.read_csv(folder / "data.csv").target
    clf = model.classifier
    sets = clf.predict_set(X, 0.9)
    np.testing.assert_allclose(found.proba, clf.predict_proba(X), rtol=1e-12)
    for line in found.classes:
        own = (y == line.name).to_numpy()
        assert line.in_set == pytest.approx(sets[own, model.classes.index(line.name)].mean())
    single = (sets.sum(axis=1) == 1) & (clf.predict_ood(X) == 1)
    assert found.trust[0].rows == single.sum()
    for one in found.most:
        at = model.classes.index(one.label)
        assert one.probability == pytest.approx(clf.predict_proba(X)[one.row - 1, at])


def test_a_bar_in_a_class_is_told_from_the_bar_between_classes(kept, tmp_path):
    folder, _ = kept
    score(folder / "m.dipedl", folder / "parts", tmp_path / "out")
    model = read_model(folder / "m.dipedl")
    found = pd.read_parquet(tmp_path / "out" / "data.parquet")
    inside = model.classifier.predict_set(pd.read_csv(folder / "data.csv")[list("xyz")], 0.9)
    texts = {}
    for row, said in zip(inside, found["set"], strict=True):
        assert texts.setdefault(said, tuple(row)) == tuple(row)


@pytest.mark.parametrize("column", ["label", "p_value", "p_other", "p_value_", "row"])
def test_a_column_to_copy_in_parts_never_stands_for_an_answer(column, tmp_path):
    made = table(("value", "other"))
    X = made[["x", "z"]].to_numpy()
    clf = DIPClassifier(density=GDADensity()).fit(X, made["target"])
    from dataclasses import replace

    from dipedl.apps.large.scoring import AT_SCALE, plain_model

    frame = pd.DataFrame(X, columns=["X0", "X1"]).assign(**{column: 1})
    with pytest.raises(UserError, match=column):
        wanted = replace(AT_SCALE, columns=[column])
        score(plain_model(clf, "X"), frame, tmp_path / "a", wanted=wanted)
    assert not (tmp_path / "a").exists()


def test_a_table_of_spectra_has_a_column_for_each_thing():
    toys, kinds = toy_spectra(60), np.array(["value", "star"] * 30)
    learned = classification.Labelled(toys.flux, kinds, [""] * 60, [])
    model = classification.fit_model(learned, 0)
    one = classification.Batch(["s.fits"], toys.select([0]))
    lines, _ = classification.classify(model, one, 0.05)
    assert lines.columns.is_unique and {"p_value_", "p_star", "p_value"} <= {*lines.columns}
    assert lines["p_value_"][0] + lines["p_star"][0] == pytest.approx(1)


def test_probabilities_of_another_system_with_a_class_called_value(run, tmp_path):
    p = np.linspace(0.05, 0.95, 60)
    made = pd.DataFrame({"p_value": p, "other": 1 - p})
    made.to_csv(tmp_path / "new.csv", index=False)
    made.assign(target=np.where(np.arange(60) % 3 > 0, "value", "other")).to_csv(
        tmp_path / "held.csv", index=False
    )
    given = ("--proba", tmp_path / "new.csv", "--held-out-proba", tmp_path / "held.csv")
    done = run("score", *given, "--out", tmp_path / "a.csv")
    assert done.exit_code == 0, done.output
    found = pd.read_csv(tmp_path / "a.csv")
    assert found.columns.is_unique
    np.testing.assert_allclose(found["p_value_"] + found["p_other"], 1)
    assert np.corrcoef(found["p_value_"], p)[0, 1] > 0.9


def test_a_feature_called_as_the_probabilities_of_a_class_are(run, tmp_path):
    p = np.linspace(0.05, 0.95, 60)
    made = pd.DataFrame({"yes": p, "no": 1 - p})
    made.to_csv(tmp_path / "new.csv", index=False)
    made.assign(target=["yes", "no"] * 30).to_csv(tmp_path / "held.csv", index=False)
    pd.DataFrame({"p_no": p, "b": p**2}).to_csv(tmp_path / "f.csv", index=False)
    words = []
    for option, name in {"proba": "new", "held-out-proba": "held"}.items():
        words += [f"--{option}", tmp_path / f"{name}.csv"]
    features = ("--features", tmp_path / "f.csv", "--held-out-features", tmp_path / "f.csv")
    done = run("score", *words, *features, "--out", tmp_path / "a.csv")
    assert done.exit_code == 1 and "has a column 'p_no'" in done.stderr
