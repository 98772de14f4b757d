"""Service, shell and Python give the same answers, to the last digit."""

import io
import json
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.feather
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

import dipedl
from dipedl.apps.cli.app import app
from dipedl.apps.serve import Models, create_app
from dipedl.apps.serve.arrow import STREAM
from dipedl.apps.serve.batching import stack_inputs
from dipedl.apps.serve.schemas import ExplainResponse, PredictResponse
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.score import FIELDS, ScoreRequest, answer_inputs
from dipedl.apps.table.table_model import save_model
from weekly import sample_of_rows

ARROW = {"content-type": STREAM}


def stream(table, **options):
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, **options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def read(body):
    return pa.ipc.open_stream(io.BytesIO(body)).read_all()


@pytest.fixture(scope="module")
def scored(kept, tmp_path_factory):
    """What `dipedl score` writes of the new rows."""
    out = tmp_path_factory.mktemp("scored") / "answers.arrow"
    arguments = ["score", kept / "model.dipedl", kept / "new.csv", "--out", out, "--quiet"]
    done = CliRunner().invoke(app, list(map(str, arguments)))
    assert done.exit_code == 0, done.output
    return pa.feather.read_table(out).to_pandas()


def test_json_is_what_python_and_the_shell_say(client, rows, by_hand, scored):
    model, X = by_hand
    clf = model.classifier
    asked = {"model": "people", "rows": rows, "fields": FIELDS}
    content = client.post("/v1/predict", json=asked).raise_for_status().json()
    PredictResponse.model_validate(content)
    found = pd.DataFrame(content["answers"])
    P = pd.DataFrame(found["probabilities"].tolist())
    np.testing.assert_array_equal(P[["no", "yes"]], clf.predict_proba(X))
    np.testing.assert_array_equal(found["vacuity"], clf.uncertainty(X))
    np.testing.assert_array_equal(found["p_value"], clf.p_value(X))
    assert found["label"].tolist() == clf.predict(X).tolist()
    assert found["flagged"].tolist() == (clf.predict_ood(X) == -1).tolist()
    for name in ("row", "label", "vacuity", "p_value", "flagged", "reason"):
        assert found[name].tolist() == scored[name].tolist()
    assert found["set"].map("|".join).tolist() == scored["set"].tolist()
    assert content["refused"] == [] and (found["reason"] != "").any()


def test_arrow_is_the_file_of_the_shell(client, kept, scored):
    new = pd.read_csv(kept / "new.csv").astype({"port": "category"})
    body = stream(pa.Table.from_pandas(new, preserve_index=False))
    query = {"model": "people", "fields": ",".join(FIELDS)}
    reply = client.post("/v1/predict", content=body, params=query, headers=ARROW)
    assert reply.status_code == 200 and reply.headers["content-type"] == STREAM
    table = read(reply.content)
    pd.testing.assert_frame_equal(table.to_pandas(), scored, check_exact=True)
    assert table.schema.metadata[b"model"] == b"people"
    assert json.loads(table.schema.metadata[b"refused"]) == []
    as_json = {**ARROW, "accept": "application/json"}
    found = client.post("/v1/predict", content=body, params=query, headers=as_json).json()
    assert [one["vacuity"] for one in found["answers"]] == scored["vacuity"].tolist()


def test_a_matrix_is_the_rows_without_names(client, rows):
    names = ["port", "age", "sex", "fare", "deck"]
    matrix = [[row[name] for name in names] for row in rows]
    by_name = client.post("/v1/predict", json={"model": "people", "rows": rows})
    asked = {"model": "people", "columns": names, "matrix": matrix}
    assert client.post("/v1/predict", json=asked).json() == by_name.json()


def test_a_model_of_an_array_takes_a_matrix(client, kept, rng):
    X = rng.normal(size=(7, 4))
    clf = dipedl.load(kept / "plain.dipedl")
    asked = {"model": "plain", "matrix": X.tolist(), "fields": FIELDS}
    found = client.post("/v1/predict", json=asked).json()["answers"]
    assert [list(one["probabilities"].values()) for one in found] == clf.predict_proba(X).tolist()
    assert [one["label"] for one in found] == clf.predict(X).astype(str).tolist()
    cards = client.post("/v1/explain", json={"model": "plain", "matrix": X.tolist()}).json()
    assert cards["cards"] == [{"row": i + 1, **c.to_dict()} for i, c in enumerate(clf.explain(X))]


def test_explanations_are_the_cards_of_the_shell(client, rows, by_hand):
    model, X = by_hand
    asked = {"model": "people", "rows": rows[:5], "top": 2}
    content = client.post("/v1/explain", json=asked).json()
    ExplainResponse.model_validate(content)
    cards = model.classifier.explain(X[:5], top=2)
    told = [card.to_dict() for card in cards]
    assert content["cards"] == [{"row": i + 1, **card} for i, card in enumerate(told)]


def test_what_was_never_seen_is_answered_as_unknown(client, rows):
    far = [{**rows[0], "port": "Z"}, {**rows[1], "fare": 3e9}, {**rows[2], "age": None}]
    far.append({**rows[3], "fare": None})
    asked = {"model": "people", "rows": far, "fields": ["vacuity", "flagged", "reason"]}
    found = client.post("/v1/predict", json=asked).json()["answers"]
    assert [list(one) for one in found] == [["row", *asked["fields"]]] * 4
    assert [one["flagged"] for one in found] == [True, True, False, True]
    assert found[3]["reason"] == "never in the training data: fare is missing"
    assert found[0]["reason"] == "never in the training data: port = 'Z'"
    assert found[1]["reason"].startswith("fare = ") and found[1]["vacuity"] > 0.99


def test_bad_rows_are_refused_by_name_and_the_others_answered(client, rows, kept, tmp_path):
    odd = [dict(row) for row in rows[:5]]
    odd[1]["age"], odd[3]["fare"] = "abc", "1e999"
    found = client.post("/v1/predict", json={"model": "people", "rows": odd}).json()
    assert [one["row"] for one in found["answers"]] == [1, 3, 5]
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, odd)))
    arguments = ["score", kept / "model.dipedl", tmp_path / "odd.jsonl"]
    out = ["--out", tmp_path / "a.csv"]
    assert CliRunner().invoke(app, list(map(str, [*arguments, *out]))).exit_code == 3
    refused = pd.read_csv(tmp_path / "a.refused.csv").to_dict("records")
    assert found["refused"] == refused and [one["row"] for one in refused] == [2, 4]


@pytest.mark.parametrize("cell", [[1], {"a": 1}, 2**63, 10**400])
def test_a_value_that_is_no_cell_leaves_out_its_row_alone(client, rows, cell):
    odd = [rows[0], {**rows[1], "age": cell}, rows[2]]
    matrix = [[row[name] for name in rows[0]] for row in odd]
    for body in ({"rows": odd}, {"matrix": matrix, "columns": list(rows[0])}):
        found = client.post("/v1/predict", json={"model": "people", **body}).json()
        assert [one["row"] for one in found["answers"]] == [1, 3]
        assert [(one["row"], one["column"]) for one in found["refused"]] == [(2, "age")]


@pytest.mark.parametrize("row", [5, None, [1, 2]])
def test_what_is_no_row_is_refused_alone(client, rows, row):
    columns, lists = list(rows[0]), [list(one.values()) for one in rows[:2]]
    for body in (
        {"rows": [rows[0], row, rows[1]]},
        {"matrix": [lists[0], row, lists[1]], "columns": columns},
        {"matrix": [lists[0], {"age": 1}, lists[1]], "columns": columns},
    ):
        found = client.post("/v1/predict", json={"model": "people", **body}).json()
        assert [one["row"] for one in found["answers"]] == [1, 3]
        (refused,) = found["refused"]
        assert (refused["row"], refused["column"]) == (2, "")
        assert refused["reason"].startswith("a row must be a")


@pytest.mark.parametrize("fine", [0, 1])
def test_every_refused_row_is_named_however_many_they_are(client, rows, fine):
    odd = [{**rows[0], "age": "abc"}] * 300 + [rows[0]] * fine
    reply = client.post("/v1/predict", json={"model": "people", "rows": odd})
    assert reply.status_code == (200 if fine else 422)
    assert [one["row"] for one in reply.json()["refused"]] == list(range(1, 301))


@pytest.mark.parametrize("name", ["sex", "port"])
def test_an_empty_text_is_answered_as_null(client, rows, name):
    one, *others = (
        client.post("/v1/predict", json={"model": "people", "rows": [{**rows[0], name: cell}]})
        for cell in (None, "", " ")
    )
    assert one.json()["answers"]
    assert [other.json()["answers"] for other in others] == [one.json()["answers"]] * 2


def dated(rows, name, kind, value):
    made = {key: [rows[0][key], rows[1][key]] for key in rows[0]}
    value *= 86_400_000 if kind == pa.date64() else 1
    whole = pa.array([value, None], pa.int32() if kind == pa.date32() else pa.int64())
    return stream(pa.table({**made, name: whole.view(kind)}))


@pytest.mark.parametrize("name", ["sex", "age"])
@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((pa.date32(), 2**31 - 1), (pa.date32(), -(2**31)), (pa.date64(), 19_000)),
        *((pa.timestamp("s"), -(2**31)), (pa.timestamp("ns", "Nowhere/Town"), 2**31 - 1)),
        *((pa.timestamp("s", "+25:00"), 0), (pa.timestamp("ms", "Europe/Berlin"), 19_000)),
        (pa.timestamp("us", ""), 0),
    ],
    ids=str,
)
def test_dates_of_any_range_and_zone_are_levels_or_no_numbers(client, rows, kind, name, value):
    body = dated(rows, name, kind, value)
    query = {"model": "people", "fields": "label,flagged"}
    as_json = {**ARROW, "accept": "application/json"}
    reply = client.post("/v1/predict", content=body, params=query, headers=as_json)
    assert reply.status_code == 200, reply.text
    content = reply.json()
    if name == "sex":
        assert content["answers"][0]["flagged"] and content["refused"] == []
    else:
        assert [(one["row"], one["column"]) for one in content["refused"]] == [(1, "age")]


UNCLOSED = (
    b'{"a":"' + b"[" * 12_000 + b'","' + b'\\"' * 100_000,
    b'{"a":"' + b'[\\"' * 100_000,
    b'{"a":"' + b"[" * 12_000 + b'","' + b"\\" * 199_999,
)


@pytest.mark.parametrize("body", UNCLOSED, ids=range(3))
def test_a_text_that_does_not_close_takes_no_time(client, body):
    """It took the square of its length, in seconds: 70 for the first of these."""
    start = time.process_time()
    reply = client.post("/v1/predict", content=body, headers={"content-type": "application/json"})
    assert reply.status_code in (400, 413)
    assert time.process_time() - start < 5


def test_rows_of_several_requests_are_answered_as_if_alone(models, by_hand):
    _, X = by_hand
    clf, request = models.find("people").model.classifier, ScoreRequest(fields=["set", "reason"])
    parts = [X[:20], X[20:21], X[21:]]
    new = pd.Categorical(["Z"] * 20, categories=["Z"])
    parts[0] = parts[0].assign(port=new)
    together = answer_inputs(clf, stack_inputs(parts), request)
    alone = [answer_inputs(clf, stack_inputs([part]), request) for part in parts]
    for name in ("labels", "flagged", "reasons", "sets", "p_values"):
        expected = np.concatenate([getattr(one, name) for one in alone])
        np.testing.assert_array_equal(getattr(together, name), expected)
    # Products of matrices of other sizes differ in the last bits.
    expected = np.concatenate([one.proba for one in alone])
    np.testing.assert_allclose(together.proba, expected, rtol=0, atol=1e-13)


def test_more_rows_than_one_pass_takes_come_in_order(client, rows, by_hand):
    model, X = by_hand
    asked = {"model": "people", "rows": rows * 40, "fields": ["p_value"]}
    found = client.post("/v1/predict", json=asked).json()["answers"]
    assert [one["row"] for one in found] == list(range(1, 2401))
    assert [one["p_value"] for one in found] == model.classifier.p_value(X).tolist() * 40


def test_the_list_of_models_says_what_a_form_needs(client, kept):
    people, plain = client.get("/v1/models").json()["models"]
    columns = {column["name"]: column for column in people["columns"]}
    assert list(columns) == ["deck", "sex", "age", "fare", "port"]
    assert columns["sex"]["levels"] == ["female", "male"]
    ages = pd.read_csv(kept / "passengers.csv")["age"]
    assert (columns["age"]["lowest"], columns["age"]["highest"]) == (ages.min(), ages.max())
    assert people["classes"] == ["no", "yes"] and people["target"] == "survived"
    assert [column["name"] for column in plain["columns"]] == ["x0", "x1", "x2", "x3"]
    assert plain["target"] is None and plain["classes"] == ["0", "1", "2"]


def test_metrics_count_rows_and_flags(served, rows, by_hand):
    model, X = by_hand
    client = served()
    for part in (rows[:40], [*rows[40:], {**rows[0], "age": "abc"}]):
        assert client.post("/v1/predict", json={"model": "people", "rows": part}).status_code == 200
    lines = client.get("/metrics").text.splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")
    clf = model.classifier
    assert values['dipedl_rows_total{model="people"}'] == "60.0"
    assert values['dipedl_rows_refused_total{model="people"}'] == "1.0"
    flagged = (clf.predict_ood(X) == -1).sum()
    assert float(values['dipedl_rows_flagged_total{model="people"}']) == flagged
    for name, of, bound in (
        ("vacuity", clf.uncertainty(X), 0.1),
        ("p_value", clf.p_value(X), 0.5),
    ):
        bucket = values[f'dipedl_{name}_bucket{{le="{bound}",model="people"}}']
        assert float(bucket) == (of <= bound).sum()
        assert float(values[f'dipedl_{name}_count{{model="people"}}']) == 60
        assert float(values[f'dipedl_{name}_sum{{model="people"}}']) == pytest.approx(of.sum())
    answered = 'dipedl_requests_total{method="POST",route="/v1/predict",status="200"}'
    assert values[answered] == "2.0"


def test_the_examples_of_openapi_are_answered(client, rows):
    described = client.get("/openapi.json").json()
    bodies = {
        path: of["post"]["requestBody"]["content"]["application/json"]["schema"]["examples"]
        for path, of in described["paths"].items()
        if "requestBody" in of.get("post", {})
    }
    assert set(bodies) == {"/v1/predict", "/v1/explain"}
    for path, examples in bodies.items():
        for example in examples:
            asked = json.loads(json.dumps(example))
            for row in asked.get("rows", []):
                row["port"] = "S"
            if "matrix" in asked:
                asked["columns"].append("port")
                asked["matrix"] = [[*row, "S"] for row in asked["matrix"]]
            reply = client.post(path, json={"model": "people", **asked})
            assert reply.status_code == 200, reply.text


@pytest.fixture(scope="module")
def zones(tmp_path_factory):
    """A client of a model whose column `zone` holds levels that are numbers, as are its classes."""
    folder, rng = tmp_path_factory.mktemp("zones"), np.random.default_rng(0)
    zone, x = rng.choice([10.0, 20.5, 30.0], 400), rng.normal(size=400)
    made = pd.DataFrame({"zone": zone, "x": x, "y": np.where(x + zone > 20, 1.0, 2.0)})
    made.to_csv(folder / "fit.csv", index=False)
    order = FitRequest("y", "linear", types={"zone": "category"})
    save_model(fit_table(open_table(folder / "fit.csv"), order).model, folder / "zones.dipedl")
    with TestClient(create_app(Models({"zones": folder / "zones.dipedl"}))) as found:
        yield found


@pytest.mark.parametrize(
    ("zone", "beside"),
    sample_of_rows(
        [
            *((10, [20.5]), (10.0, [2**53 + 1, None]), ("10", [None]), ("10.0", ["harbour"])),
            *(("1e+01", [True]), (10.0, ["harbour"]), (10, [])),
        ],
        0,
        3,
        4,
    ),
)
def test_a_level_is_the_same_alone_and_beside_any_other(zones, zone, beside):
    rows = [{"zone": z, "x": 0.5} for z in [zone, *beside]]
    matrix = {"columns": ["zone", "x"], "matrix": [[row["zone"], row["x"]] for row in rows]}
    alone = zones.post("/v1/predict", json={"rows": [{"zone": "10", "x": 0.5}]}).json()["answers"]
    assert alone[0]["p_value"] > 0.05
    for asked in ({"rows": rows}, matrix):
        found = zones.post("/v1/predict", json=asked).raise_for_status().json()["answers"]
        assert len(found) == len(rows) and found[0].keys() == alone[0].keys()
        for name, value in alone[0].items():
            is_exact = isinstance(value, str | bool)
            assert found[0][name] == (value if is_exact else pytest.approx(value, rel=1e-12))
        assert set(found[0]["probabilities"]) == {"1", "2"}


@pytest.mark.parametrize("values", [[10, 30], [10.0, 30.0], [10, None]])
def test_a_level_of_arrow_is_that_of_json(zones, values):
    body = stream(pa.table({"zone": values, "x": [0.5, 0.5]}))
    found = read(zones.post("/v1/predict", content=body, headers=ARROW).content).to_pandas()
    rows = [{"zone": value, "x": 0.5} for value in values]
    expected = pd.DataFrame(zones.post("/v1/predict", json={"rows": rows}).json()["answers"])
    np.testing.assert_allclose(found["p_value"], expected["p_value"], rtol=1e-12)
    assert found["label"].tolist() == expected["label"].tolist()
