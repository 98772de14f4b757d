"""Who may ask, what is too much, and how a service says so: each status code."""

import asyncio
import json
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from sklearn.ensemble import HistGradientBoostingClassifier
from starlette.datastructures import URL
from starlette.requests import Request

import dipedl
from dipedl import DIPClassifier
from dipedl.apps.cli.serve import check_exposed, parse_paths, read_token
from dipedl.apps.serve import Settings, batching, create_app, demo
from dipedl.apps.serve import app as service_module
from dipedl.apps.serve import models as serving
from dipedl.apps.serve.arrow import STREAM
from dipedl.apps.serve.models import Models
from dipedl.apps.serve.process import bind
from dipedl.apps.serve.telemetry import log_as_json
from dipedl.apps.table.errors import UsageError, UserError
from dipedl.apps.table.score import cards_of
from dipedl.density import GDADensity

TOKEN = "0123456789abcdef"
JSON = "application/json"


def check_refused(reply, status, field):
    content = reply.json()
    assert (reply.status_code, content["field"]) == (status, field), content
    assert content["reason"] and content["request_id"] == reply.headers["x-request-id"]


@pytest.fixture
def slow(models, monkeypatch):
    """Passes of the model wait for this event."""
    goes_on = threading.Event()
    answers = batching.answer_inputs

    def late(*arguments):
        goes_on.wait(5)
        return answers(*arguments)

    monkeypatch.setattr(batching, "answer_inputs", late)
    yield goes_on
    goes_on.set()


ROW = {"deck": 1, "sex": "female", "age": 31.5, "fare": 47.1, "port": "S"}
REFUSED = [
    ({"model": None, "rows": [ROW]}, 422, "model"),
    ({"model": "peple", "rows": [ROW]}, 404, "model"),
    ({"rows": [{**ROW, "age": [1]}]}, 422, "rows[0].age"),
    ({"rows": [{**ROW, "age": "x"}]}, 422, "rows[0].age"),
    ({"rows": [{**ROW, "age": 10**400}]}, 422, "rows[0].age"),
    ({"rows": [{"Age" if name == "age" else name: ROW[name] for name in ROW}]}, 422, "rows[0].age"),
    ({"rows": [{"deck": 1, "fare": 5.0}]}, 422, "rows[0].sex"),
    ({"rows": [[1], 5]}, 422, "rows[0]"),
    ({"rows": 5}, 422, "rows"),
    ({"matrix": {}}, 422, "matrix"),
    ({"rows": []}, 422, "rows"),
    ({}, 422, "rows"),
    ({"rows": [ROW], "matrix": [[1]]}, 422, "rows"),
    ({"rows": [ROW], "columns": ["age"]}, 422, "columns"),
    ({"matrix": [[1, 2]]}, 422, "matrix[0]"),
    ({"matrix": [[1]], "columns": ["deck"]}, 422, "columns"),
    ({"matrix": [[1, 1]], "columns": ["deck", "deck"]}, 422, "columns"),
    ({"rows": [ROW], "coverage": 1}, 422, "coverage"),
    ({"rows": [ROW], "fields": ["labels"]}, 422, "fields[0]"),
    ({"rows": [ROW], "field": ["label"]}, 422, "field"),
    ({"model": "plain", "matrix": [[1, 2, 3, None]]}, 422, "rows"),
]


@pytest.mark.parametrize(("body", "status", "field"), REFUSED)
def test_fields_of_a_request_are_named(client, body, status, field):
    check_refused(client.post("/v1/predict", json={"model": "people", **body}), status, field)


@pytest.mark.parametrize(
    ("method", "path", "content", "headers", "status", "field"),
    [
        ("POST", "/v1/explain", b'{"model": "people", "rows": [], "top": 0}', JSON, 422, "top"),
        ("GET", "/v1/predict", None, JSON, 405, "method"),
        ("GET", "/v1/nothing", None, JSON, 404, "path"),
        ("POST", "/v1/models/x/reload", b"", JSON, 404, "model"),
        ("POST", "/v1/predict", b"{", JSON, 400, "body"),
        ("POST", "/v1/predict", b'{"rows": [{"age": 1, "fare": 2, "age": 3}]}', JSON, 422, "age"),
        ("POST", "/v1/explain", b'{"rows": [], "rows": [{"port": "a:b"}]}', JSON, 422, "rows"),
        ("POST", "/v1/predict", b"a=1", "text/plain", 415, "content-type"),
        ("POST", "/v1/explain", b"ARROW", STREAM, 415, "content-type"),
        ("POST", "/v1/predict", b"ARROW", STREAM, 422, "model"),
    ],
)
def test_other_requests_are_refused(client, method, path, content, headers, status, field):
    reply = client.request(method, path, content=content, headers={"content-type": headers})
    check_refused(reply, status, field)
    packed = {"content-type": JSON, "content-encoding": "gzip"}
    check_refused(client.post("/v1/predict", headers=packed), 415, "content-encoding")


def test_a_text_may_hold_a_colon(client):
    body = {"model": "people", "rows": [{**ROW, "port": 'a": 1, "a": 2'}]}
    assert client.post("/v1/predict", json=body).json()["answers"][0]["flagged"]


def test_a_missing_name_is_suggested_and_the_other_missing_names_are_listed(client, rows):
    one = {"deck": 1, "fare": 5.0, "Sex": "male"}
    several = {"model": "people", "rows": [rows[0], one, {**one, "age": 3}]}
    refused = client.post("/v1/predict", json=several).json()["refused"]
    assert [(row["row"], row["column"]) for row in refused] == [(2, "sex"), (3, "sex")]
    assert "did you mean 'Sex'?" in refused[0]["reason"] and "'age'" in refused[0]["reason"]
    assert (
        "'port'" in refused[1]["reason"] and "'age'" not in refused[1]["reason"].partition(":")[0]
    )


def test_too_many_rows_and_bytes(served, rows):
    client = served(rows=3, explained=2, body_bytes=10_000)

    def ask(path="/v1/predict", **body):
        return client.post(path, json={"model": "people", **body})

    assert ask(rows=rows[:3]).status_code == 200
    check_refused(ask(rows=rows[:4]), 413, "rows")
    check_refused(ask("/v1/explain", rows=rows[:3]), 413, "rows")
    check_refused(ask(matrix=[[]] * 4), 413, "matrix")
    check_refused(ask(rows=[{"a": "x" * 10_000}]), 413, "body")
    check_refused(ask(matrix=[[[]] * 2_000]), 413, "body")
    pieces = iter([b" " * 6_000, b" " * 6_000])  # without a Content-Length
    reply = client.post("/v1/predict", content=pieces, headers={"content-type": JSON})
    check_refused(reply, 413, "body")


def send(client, table, batches=1, **options):
    """Post a stream of a table, in some batches that are each the whole table."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        for _ in range(batches):
            writer.write_table(table)
    query = {"content": sink.getvalue().to_pybytes(), "headers": {"content-type": STREAM}}
    return client.post("/v1/predict?model=people", **query)


def test_streams_are_bounded_by_batches_columns_cells_and_bytes_written_out(served, rows):
    client = served(body_bytes=4_000_000)
    table = pa.Table.from_pylist(rows[:1])
    assert send(client, table, 500).status_code == 200
    check_refused(send(client, table[:0], 25_000 // 5), 422, "rows")
    check_refused(send(client, table.select(["deck", *table.column_names])), 422, "columns")
    check_refused(send(client, table.drop_columns(["sex"])), 422, "columns")
    for i in range(1_001 - (table.num_columns - 5)):
        table = table.append_column(f"x{i}", pa.nulls(1))
    check_refused(send(client, table), 413, "columns")
    table = table.drop_columns(["x0"])
    assert send(client, table).status_code == 200
    check_refused(send(client, table, 150), 413, "body")
    # One text for all rows, and no row of itself too long.
    for length, status in ((400, 200), (500, 413)):
        codes = pa.DictionaryArray.from_arrays(np.zeros(9_000, np.int8), ["x" * length])
        long = pa.table({**{name: pa.nulls(9_000) for name in rows[0]}, "sex": codes})
        reply = send(client, long)
        assert reply.status_code == status, reply.text
    gaps = pa.table({name: pa.nulls(9_000) for name in rows[0]})
    check_refused(send(served(body_bytes=40_000), gaps), 413, "body")
    check_refused(send(client, gaps, compression="zstd"), 415, "body")


def test_dictionaries_in_parts_are_refused(served, rows):
    sink, table = pa.BufferOutputStream(), pa.Table.from_pylist(rows[:2])
    grown = [pa.array(["male", "x"][:n]).dictionary_encode() for n in (1, 2)]
    at = table.column_names.index("sex")
    parts = [table[:n].set_column(at, "sex", codes) for n, codes in zip((1, 2), grown, strict=True)]
    options = pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)
    with pa.ipc.new_stream(sink, parts[0].schema, options=options) as writer:
        for part in parts:
            writer.write_table(part)
    body = {"content": sink.getvalue().to_pybytes(), "headers": {"content-type": STREAM}}
    check_refused(served().post("/v1/predict?model=people", **body), 415, "body")


def test_explanations_that_took_too_long_are_not_continued(served, rows, monkeypatch):
    begun = []

    def slow(model, X, top):
        begun.append(len(X))
        time.sleep(0.1)
        return cards_of(model, X, top)

    monkeypatch.setattr(service_module, "cards_of", slow)
    client = served(seconds=0.05)
    asked = {"model": "people", "rows": rows[:40]}
    check_refused(client.post("/v1/explain", json=asked), 504, "body")
    time.sleep(0.3)
    assert sum(begun) < 40 and client.get("/health/live").status_code == 200


def test_what_takes_too_long_is_given_up(served, rows, slow):
    client = served(seconds=0.3)
    asked = {"model": "people", "rows": rows[:1]}
    check_refused(client.post("/v1/predict", json=asked), 504, "body")
    slow.set()
    # The pass that was given up has its end first.
    assert any(client.post("/v1/predict", json=asked).status_code == 200 for _ in range(20))


def test_a_body_that_does_not_come_is_given_up(models):
    app, sent = create_app(models, Settings(seconds=0.05)), []
    scope = {"type": "http", "method": "POST", "path": "/v1/predict", "query_string": b""}

    async def receive():
        await asyncio.sleep(1)

    async def send(message):
        sent.append(message)

    asyncio.run(app(scope | {"headers": [(b"content-type", JSON.encode())]}, receive, send))
    assert sent[0]["status"] == 408


def test_more_requests_than_may_wait_are_sent_away(served, rows, slow):
    client = served(waiting=2)
    asked = {"model": "people", "rows": rows[:1]}
    replies = []
    threads = [
        threading.Thread(target=lambda: replies.append(client.post("/v1/predict", json=asked)))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    while "dipedl_requests_running 2.0" not in client.get("/metrics").text:
        time.sleep(0.005)
    reply = client.post("/v1/predict", json=asked)
    check_refused(reply, 429, "request")
    assert reply.headers["retry-after"] == "1"
    assert client.get("/health/ready").status_code == 200, "health is never sent away"
    slow.set()
    for thread in threads:
        thread.join()
    assert [one.status_code for one in replies] == [200, 200]


def test_the_token_is_asked_of_all_but_health(served, rows):
    client = served(token=TOKEN)
    asked = {"model": "people", "rows": rows[:1]}
    for header in ("", "Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer é"):
        reply = client.post("/v1/predict", json=asked, headers={"authorization": header.encode()})
        check_refused(reply, 401, "authorization")
        assert reply.headers["www-authenticate"] == "Bearer" and TOKEN not in reply.text
    for path in ("/v1/models", "/metrics", "/openapi.json"):
        check_refused(client.get(path), 401, "authorization")
    assert {client.get(f"/health/{name}").status_code for name in ("live", "ready")} == {200}
    client.headers["authorization"] = f"Bearer {TOKEN}"
    assert client.post("/v1/predict", json=asked).status_code == 200
    schemes = client.get("/openapi.json").json()["components"]["securitySchemes"]
    assert schemes["HTTPBearer"]["scheme"] == "bearer"


def raw(app, path, **headers):
    """Status of a GET whose head is as it was sent, as clients would not send it."""
    scope = {"type": "http", "http_version": "1.1", "method": "GET", "scheme": "http", "path": path}
    scope |= {"raw_path": path.encode(), "query_string": b"", "root_path": ""}
    scope["headers"] = [(name.encode(), value.encode()) for name, value in headers.items()]
    sent = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    asyncio.run(app({**scope, "server": ("127.0.0.1", 80)}, receive, send))
    return sent[0]["status"]


HOSTS = ("x/?", "x/health/live?", "x/page/x?", "x/#", "/?", "?", "#", "x\\?", "x:80/?", "[", "")


@pytest.mark.parametrize("host", HOSTS)
def test_a_hostile_host_opens_no_route(models, host, monkeypatch):
    # Starlette before 1.0.1 puts the Host header before the path, whatever it holds.
    made = property(lambda request: URL(f"http://{request.headers['host']}{request.scope['path']}"))
    secured = create_app(models, Settings(token=TOKEN))
    paths = ["/v1/models", "/v1/drift", "/metrics", "/openapi.json"]
    assert [raw(secured, path, host=host) for path in paths] == [401] * 4
    monkeypatch.setattr(Request, "url", made)
    assert [raw(secured, path, host=host) for path in paths] == [401] * 4
    token = f"Bearer {TOKEN}"
    assert [raw(secured, path, host=host, authorization=token) for path in paths] == [200] * 4


def test_tokens_come_from_a_file_or_the_environment(tmp_path):
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    assert read_token(file, {}) == TOKEN == read_token(None, {"DIPEDL_TOKEN": TOKEN})
    assert read_token(None, {}) == ""
    with pytest.raises(UsageError, match="both"):
        read_token(file, {"DIPEDL_TOKEN": TOKEN})
    for text in ("", "short", "with a space in it, though long", "é" * 20):
        with pytest.raises(UserError, match="openssl rand"):
            read_token(None, {"DIPEDL_TOKEN": text})
    with pytest.raises(UserError, match="--token-file"):
        read_token(tmp_path / "none", {})


def test_others_reach_it_only_with_a_token_or_by_a_word():
    for host in ("127.0.0.1", "127.0.0.9", "::1", "localhost"):
        check_exposed(host, "", False)
    for host in ("0.0.0.0", "::", "10.0.0.1", "example.org"):
        with pytest.raises(UsageError, match="--without-token"):
            check_exposed(host, "", False)
        check_exposed(host, TOKEN, False)
        check_exposed(host, "", True)
    with pytest.raises(UsageError, match="leave one out"):
        check_exposed("0.0.0.0", TOKEN, True)


def test_a_port_in_use_is_told():
    with bind("127.0.0.1", 0, 1) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(UserError, match=f"port {port} of 127.0.0.1 is in use"):
            bind("127.0.0.1", port, 1)
    with pytest.raises(UserError, match=r"198\.51\.100\.1"):
        bind("198.51.100.1", 0, 1)


def test_pages_of_other_sites_may_not_ask(served):
    client = served(hosts=("localhost",))
    local = {"host": "localhost:8000"}
    assert client.get("/v1/models", headers=local).status_code == 200
    check_refused(client.get("/v1/models", headers={"host": "evil.example"}), 421, "host")
    for origin in ("http://evil", "http://[", "http://[::1", "http://]", "null"):
        reply = client.get("/health/live", headers={**local, "origin": origin})
        check_refused(reply, 403, "origin")
    same = {**local, "origin": "http://localhost:8000"}
    reply = client.get("/v1/models", headers=same)
    assert reply.status_code == 200 and "access-control-allow-origin" not in reply.headers


def test_headers_and_numbers_of_requests(client):
    reply = client.get("/health/live", headers={"x-request-id": "abc-1"})
    assert reply.headers["x-request-id"] == "abc-1"
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    for odd in ("a b", "x" * 65, "<script>"):
        numbers = {
            client.get("/health/live", headers={"x-request-id": odd}).headers["x-request-id"]
            for _ in range(2)
        }
        assert len(numbers) == 2 and odd not in numbers


def test_the_log_holds_no_values_unless_asked(served, rows, log):
    secret = {**rows[0], "port": "very-private"}
    asked = {"model": "people", "rows": [secret, {**secret, "age": "very-private"}]}
    served().post("/v1/predict", json=asked)
    served().post("/v1/predict", json={"model": "people", "rows": asked["rows"][1:]})
    first, second = log()
    assert (first["event"], first["route"], first["status"]) == ("request", "/v1/predict", 200)
    assert (first["model"], first["rows"], first["refused"]) == ("people", 1, 1)
    assert second["status"] == 422 and "very-private" not in json.dumps([first, second])
    client = served(log_inputs=True)
    client.post("/v1/predict", json=asked)
    client.post("/v1/predict", json={"model": "people", "rows": [{**rows[0], "age": None}]})
    assert "very-private" in json.dumps(log()[2]["inputs"])
    assert None in log()[3]["inputs"][0], "NaN is no JSON"


def raise_error(*_, **__):
    raise RuntimeError("secret words")


def test_a_failure_is_no_story_for_clients(models, rows, log, monkeypatch):
    monkeypatch.setattr(batching, "answer_inputs", raise_error)
    with TestClient(create_app(models)) as client:
        reply = client.post("/v1/predict", json={"model": "people", "rows": rows[:1]})
        check_refused(reply, 500, "service")
        assert client.get("/health/ready").status_code == 200
    assert "secret" not in reply.text and "Traceback" not in reply.text
    failed = log()[0]
    assert failed["exception"] == "RuntimeError" and any("raise_error" in at for at in failed["at"])
    assert "secret words" not in json.dumps(log()), "words of an error may hold values"


def test_a_log_that_cannot_be_written_stops_nothing(client, rows, log):
    class Full:
        def write(self, _):
            raise OSError(28, "No space left on device")

        flush = write

    log_as_json(Full())
    asked = {"model": "people", "rows": rows[:1]}
    assert client.post("/v1/predict", json=asked).status_code == 200


def test_names_of_models():
    paths = parse_paths(["a/b.dipedl", "x=c=d"])
    assert {name: str(path) for name, path in paths.items()} == {"b": "a/b.dipedl", "x": "c=d"}
    for arguments in (["a/m.dipedl", "b/m.dipedl"], ["a b.dipedl"]):
        with pytest.raises(UsageError, match="name"):
            parse_paths(arguments)


def test_a_broken_file_keeps_the_old_model(kept, tmp_path, rows, served):
    path = tmp_path / "m.dipedl"
    good = (kept / "model.dipedl").read_bytes()
    path.write_bytes(good)
    client, asked = served(Models({"m": path})), {"rows": rows[:3]}
    before = client.post("/v1/predict", json=asked).json()
    for broken in (good[: len(good) // 2], b"", b"PK", None):
        path.unlink() if broken is None else path.write_bytes(broken)
        check_refused(client.post("/v1/models/m/reload"), 409, "model")
        assert client.post("/v1/predict", json=asked).json() == before
    assert "there is no model" in client.get("/v1/models").json()["models"][0]["problem"]
    path.write_bytes((kept / "plain.dipedl").read_bytes())
    facts = client.post("/v1/models/m/reload").json()
    assert facts["classes"] == ["0", "1", "2"] and facts["problem"] is None
    assert facts["version"] != before["version"]
    assert client.post("/v1/predict", json={"matrix": [[0, 0, 0, 0]]}).status_code == 200
    assert 'dipedl_reloads_total{model="m",ok="no"} 4.0' in client.get("/metrics").text


def test_a_reload_that_fails_in_any_way_keeps_the_old_model(kept, served, log, monkeypatch):
    client = served(Models({name: kept / "plain.dipedl" for name in ("a", "b")}))
    monkeypatch.setattr(serving, "load_served", raise_error)
    check_refused(client.post("/v1/models/a/reload"), 409, "model")
    client.app.state.service.reload_all()
    assert client.post("/v1/predict", json={"model": "a", "matrix": [[0] * 4]}).status_code == 200
    failed = [line for line in log() if line["event"] == "reload"]
    assert [line["model"] for line in failed] == ["a", "a", "b"]
    assert {line["exception"] for line in failed} == {"RuntimeError"}
    assert "secret words" not in json.dumps(failed)


def test_a_model_of_the_demo_can_be_read_again(kept, served, monkeypatch):
    def copied(*paths):
        paths[-1].write_bytes((kept / "plain.dipedl").read_bytes())

    monkeypatch.setattr(demo, "_fit_digits", copied)
    monkeypatch.setattr(demo, "_fit_flowers", copied)
    client = served(demo.demo_models()[0])
    assert client.post("/v1/models/iris/reload").raise_for_status().json()["problem"] is None


def test_what_is_no_model_of_a_service_is_told(tmp_path):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(220, 2)), np.arange(220) % 2
    dipedl.save(GDADensity().fit(X, y), tmp_path / "d.dipedl")
    table = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(y, "u", "v"))})
    trees = HistGradientBoostingClassifier(max_iter=2)
    DIPClassifier(trees, random_state=0).fit(table, y).save(tmp_path / "t.dipedl")
    for name in "dt":
        with pytest.raises(UserError, match=f"{name}.dipedl"):
            Models({name: tmp_path / f"{name}.dipedl"})
