"""``dipedl monitor``."""

import json

import pandas as pd

from passengers import passengers


def stream(kept, tmp_path, name, seed, n=600, **changed):
    path = tmp_path / name
    passengers(n, seed=seed).assign(**changed).to_csv(path, index=False)
    return path


def test_a_stream_goes_on_tomorrow_and_an_alarm_is_an_exit_code(run, kept, tmp_path):
    model, state, page = kept / "model.dipedl", tmp_path / "state", tmp_path / "page.html"
    monday = stream(kept, tmp_path, "monday.csv", 5)
    done = run("monitor", model, monday, "--state", state, "--window", 300, "--batch", 1, "-q")
    assert done.exit_code == 0, done.output
    assert "600 in 2 batches" in done.output and "Accuracy:" in done.output
    again = run("monitor", model, monday, "--state", state, "--batch", 1, "-q")
    assert again.exit_code == 1 and "batch must be larger than 1" in again.output
    older = stream(kept, tmp_path, "tuesday.csv", 6, age=400.0)
    loud = run("monitor", model, older, "--state", state, "--page", page, "--json", "-q")
    found = json.loads(loud.stdout)
    assert loud.exit_code == 4 and found["alarm"] and found["rows"] == 1200
    assert found["gauges"]["drift_alarm"] == 1.0
    assert found["window"]["changed"][0][0] == "age"
    assert "601 to 900" in page.read_text() and "<script" not in page.read_text()


def test_no_alarm_and_no_changed_column_by_fresh_rows(run, kept, tmp_path):
    fresh = stream(kept, tmp_path, "fresh.csv", 7)
    done = run("monitor", kept / "model.dipedl", stream(kept, tmp_path, "day.csv", 8),
               "--reference", fresh, "--json", "-q")  # fmt: skip
    assert done.exit_code == 0 and json.loads(done.stdout)["reference"] == "600 given rows"


def test_what_is_refused(run, kept, tmp_path):
    model, day, state = kept / "model.dipedl", kept / "new.csv", tmp_path / "state"
    assert run("monitor", model, day, "--state", state, "-q").exit_code == 0
    late = run("monitor", model, day, "--state", state, "--window", 100, "-q")
    assert late.exit_code == 2 and "for a monitor that begins" in late.output
    wrong = run("monitor", model, day, "--state", model, "-q")
    assert wrong.exit_code != 0
    lacking = tmp_path / "lacking.csv"
    pd.read_csv(day).drop(columns="age").to_csv(lacking, index=False)
    told = run("monitor", model, lacking, "--state", state, "-q")
    assert told.exit_code == 1 and "lacks the column 'age'" in told.output
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"no monitor")
    told = run("monitor", model, day, "--state", damaged, "-q")
    assert told.exit_code == 1 and "name a file that is not there" in told.output
    twice = run(
        "monitor", model, day, "--page", tmp_path / "one", "--state", tmp_path / "one", "-q"
    )
    assert twice.exit_code == 2 and "name two files" in twice.output
    rate = run("monitor", model, day, "--false-alarms", 2, "-q")
    assert rate.exit_code == 2
