"""What the page is made of, what it asks of the service, and what the service says of drift."""

import re
import time

import numpy as np
import pandas as pd
import pytest
from fastapi.testclient import TestClient

from dipedl import DIPClassifier, DriftMonitor
from dipedl.apps.serve import Models, create_app
from dipedl.apps.serve import drift as monitors
from dipedl.apps.serve.schemas import Pictures
from dipedl.apps.table.fit import FitRequest, fit_table
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.score import start_monitor
from dipedl.apps.table.table_model import save_model
from weekly import sample_of

TOKEN = "0123456789abcdef"


def asked(client, rows, **more):
    reply = client.post("/v1/predict", json={"model": "people", "rows": rows, **more})
    return reply.raise_for_status().json()["answers"]


def drift(client):
    found = client.get("/v1/drift").raise_for_status().json()["models"]
    return {one["model"]: one for one in found}


def test_every_file_that_the_page_names_is_served_and_nothing_else(client):
    text = client.get("/").text
    todo, seen = set(re.findall(r'(?:src|href)="([^"]+)"', text)), set()
    assert "page/main.js" in todo
    while todo:
        name = todo.pop()
        seen.add(name)
        reply = client.get(f"/{name}")
        assert reply.status_code == 200 and name.startswith("page/"), name
        imports = re.findall(r'from "([^"]+)"', reply.text) if name.endswith(".js") else []
        todo |= {name.replace("./", "page/") for name in imports} - seen
    assert len(seen) > 10 and "page/pad.js" in seen
    for name in ("__init__.py", "pictures.py", "..%2f__init__.py", "none.js"):
        assert client.get(f"/page/{name}").status_code == 404


def test_the_policy_allows_this_service_alone_and_nothing_inline_is_needed(client):
    reply = client.get("/")
    policy = reply.headers["content-security-policy"]
    assert reply.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert set(re.findall(r"(?:https?|data|blob|unsafe)[^ ;]*", policy)) == set()
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert re.findall(r"<script(?![^>]* src=)|<style|\sstyle=|\son\w+=", reply.text) == []
    assert client.get("/health/live").headers["content-security-policy"] != policy


def test_the_page_comes_without_the_token_and_its_answers_do_not(served):
    client = served(token=TOKEN)
    assert client.get("/").status_code == client.get("/page/main.js").status_code == 200
    for path in ("/v1/models", "/v1/drift", "/v1/models/people/pictures", "/page/x/y"):
        assert client.get(path).status_code == 401


def test_the_dirichlet_follows_from_what_the_page_is_told(client, rows, by_hand):
    model, X = by_hand
    facts = client.get("/v1/models").json()["models"][0]
    answers = asked(client, rows)
    mean = np.array([list(one["probabilities"].values()) for one in answers])
    sums = facts["prior"] / np.array([one["vacuity"] for one in answers])
    d = model.classifier.predict_dirichlet(X)
    # The page shows what the answer is worth in training rows, whatever its error.
    expected = d.mean * (np.exp(d.log_evidence) + facts["prior"])[:, None]
    np.testing.assert_allclose(mean * sums[:, None], expected, rtol=1e-9)


def test_a_form_of_usual_values_is_answered_and_not_flagged(client):
    columns = client.get("/v1/models").json()["models"][0]["columns"]
    row = {column["name"]: column["usual"] for column in columns}
    (found,) = asked(client, [row])
    assert not found["flagged"] and found["p_value"] > 0.2


def ordinary(folder, frame, **order):
    """The usual row of a model of a table, and the answer to it."""
    frame.to_csv(folder / "t.csv", index=False)
    found = fit_table(open_table(folder / "t.csv"), FitRequest("y", model="linear", **order))
    save_model(found.model, folder / "t.dipedl")
    with TestClient(create_app(Models({"people": folder / "t.dipedl"}))) as client:
        columns = client.get("/v1/models").json()["models"][0]["columns"]
        row = {column["name"]: column["usual"] for column in columns}
        return row, asked(client, [row])[0]


@pytest.mark.parametrize("date", sample_of(["%d.%m.%Y", "%Y-%m-%d %H:%M:%S"], 0))
def test_the_usual_row_is_of_medians_and_commonest_levels_dates_too(tmp_path, rng, date):
    n = 301
    when = pd.Series(pd.date_range("2019-03-01 06:00", periods=n, freq="13h"))
    side = rng.choice([-1.0, 1.0], n)
    frame = pd.DataFrame(
        {
            "y": np.where(side + rng.normal(0, 0.5, n) > 0, "up", "down"),
            "side": side + rng.normal(0, 0.3, n),
            "level": rng.choice(["z", "a", "m"], n, p=[0.8, 0.1, 0.1]),
            "truth": rng.choice(["no", "yes"], n, p=[0.2, 0.8]),
            "few": rng.choice([1, 2, 9], n, p=[0.2, 0.7, 0.1]),
            "when": when.dt.strftime(date),
        }
    )
    row, answer = ordinary(tmp_path, frame)
    given = pd.read_csv(tmp_path / "t.csv")
    assert row["side"] == given["side"].median() and row["few"] == given["few"].median()
    assert row["level"] == given["level"].mode()[0] and row["truth"] == 1
    days = pd.to_datetime(given["when"], format=date).sort_values()
    assert row["when"] == days.iloc[n // 2].strftime(date)
    assert not answer["flagged"]


def test_usual_values_that_are_unusual_together_are_changed(tmp_path, rng):
    # Three clumps: the median of the one column is never beside that of the other.
    at = rng.choice(3, 300)
    noise = rng.normal(0, 0.1, (300, 2))
    points = np.array([[-9.0, 0.0], [0.0, 9.0], [9.0, -9.0]])[at] + noise
    frame = pd.DataFrame(points, columns=["u", "v"]).assign(y=np.array(["a", "b", "c"])[at])
    row, answer = ordinary(tmp_path, frame)
    assert not answer["flagged"] and row["u"] in set(pd.read_csv(tmp_path / "t.csv")["u"])
    DIPClassifier(random_state=0).fit(points, at).save(tmp_path / "p.dipedl")
    served = Models({"p": tmp_path / "p.dipedl"}).find(None)
    matrix = [list(served.usual.values())]
    assert served.model.classifier.predict_ood(np.array(matrix)).tolist() == [1]


def test_pictures_are_those_of_the_model_that_has_them(models):
    images = np.arange(8, dtype=np.uint8).reshape(2, 4)
    pictures = {"plain": Pictures(2, 2, images, ["0", "1"], {"some": images[:1]})}
    with TestClient(create_app(models, pictures=pictures)) as client:
        assert [one["pictures"] for one in client.get("/v1/models").json()["models"]] == [0, 1]
        assert client.get("/v1/models/people/pictures").status_code == 404
        found = client.get("/v1/models/plain/pictures").json()
    assert found["images"] == "AAECAwQFBgc=" and found["examples"] == {"some": "AAECAw=="}
    assert (found["height"], found["width"], found["labels"]) == (2, 2, ["0", "1"])


def test_drift_is_that_of_a_monitor_fed_by_hand(served, rows, by_hand):
    model, X = by_hand
    client = served(window=60)
    for _ in range(3):
        asked(client, rows[:40])
        asked(client, rows[40:], fields=["label"])
    monitor = start_monitor(model, None, 0.01, 60)
    for _ in range(3):
        report = monitor.update(model.classifier, X)
    found = drift(client)
    people = found["people"]
    assert people["report"]["evidence"] == pytest.approx(report.evidence)
    assert people["report"]["rows"] == 180 and len(people["windows"]) == 3
    assert people["windows"][-1]["distance"] == pytest.approx(monitor.windows_[-1].distance)
    assert (people["windows"][0]["first"], people["windows"][0]["last"]) == (1, 60)
    assert found["plain"]["report"] is None and found["plain"]["windows"] == []
    lines = client.get("/metrics").text.splitlines()
    gauges = {line.partition("{")[0] for line in lines if line.startswith("dipedl_drift")}
    assert gauges == {f"dipedl_{name}" for name in report.gauges()}
    assert 'dipedl_drift_rows{model="people"} 180.0' in lines


def test_rows_that_are_unlike_the_fit_raise_an_alarm_and_a_reload_begins_anew(served, kept):
    client = served(Models({"plain": kept / "plain.dipedl"}), window=50)
    for _ in range(6):
        client.post("/v1/predict", json={"matrix": [[9.0, -9.0, 9.0, -9.0]] * 10})
    found = drift(client)["plain"]
    assert found["report"]["alarm"] and found["report"]["rows"] == 50
    assert found["windows"][0]["flagged"] == 1.0
    client.post("/v1/models/plain/reload")
    assert drift(client)["plain"]["report"] is None


def test_a_monitor_that_fails_stops_no_answer(served, rows, monkeypatch):
    logged = []
    monkeypatch.setattr(monitors._log, "exception", lambda *told, **_: logged.append(told))

    def broken(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr(DriftMonitor, "update_answers", broken)
    client = served()
    assert len(asked(client, rows)) == len(rows) and len(asked(client, rows)) == len(rows)
    assert client.get("/health/ready").status_code == 200
    monkeypatch.setattr(monitors, "start_monitor", lambda *_: DriftMonitor(window=0).fit(None))
    client = served()
    asked(client, rows)
    until = time.monotonic() + 10  # the monitor sees rows after their answer has gone
    while not (problem := drift(client)["people"]["problem"]) and time.monotonic() < until:
        time.sleep(0.01)
    assert "window must be" in problem
    assert logged == [("drift",), ("drift",)]
