"""``dipedl monitor``."""

import json
import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dipedl import load
from dipedl.apps.monitor.windows import compare_counts, count_rows, learn_column
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
    assert re.search(r"Accuracy, last window: .*, 300 rows", done.output)
    again = run("monitor", model, monday, "--state", state, "--batch", 1, "-q")
    assert again.exit_code == 1 and "batch must be larger than 1" in again.output
    older = stream(kept, tmp_path, "tuesday.csv", 6, age=400.0)
    loud = run("monitor", model, older, "--state", state, "--page", page, "--json", "-q")
    found = json.loads(loud.stdout)
    assert loud.exit_code == 4 and found["alarm"] and found["rows"] == 1200
    assert found["gauges"]["drift_alarm"] == 1.0
    assert found["window"]["changed"][0][0] == "age"
    assert "601 to 900" in page.read_text() and "<script" not in page.read_text()
    # Charts of evidence, rows, accuracy and columns.
    assert page.read_text().count('role="img"') == 4 and "nan" not in page.read_text()


def test_a_page_before_the_first_window_says_so_and_names_drive_no_chart(run, tmp_path):
    rng, odd = np.random.default_rng(0), "price $_{x}$ \u6570\n<i>"
    rows = pd.DataFrame({odd: rng.normal(size=200), "z": rng.normal(size=200)})
    rows = rows.assign(y=np.where(rows["z"] > 0, "a", "b"))
    rows.to_parquet(tmp_path / "rows.parquet")
    rows.assign(**{odd: 9.0}).to_parquet(tmp_path / "moved.parquet")
    model, state, page = tmp_path / "m", tmp_path / "state", tmp_path / "page.html"
    run("fit", tmp_path / "rows.parquet", "--target", "y", "--model", "linear", "--out", model)
    begin = ("--state", state, "--window", 300, "--page", page)
    assert run("monitor", model, tmp_path / "rows.parquet", *begin).exit_code == 0
    assert "200 of 300 rows" in page.read_text() and 'role="img"' not in page.read_text()
    done = run("monitor", model, tmp_path / "moved.parquet", "--state", state, "--page", page)
    assert done.exit_code == 4 and "note:" not in done.output
    assert page.read_text().count('role="img"') == 4 and "<i>" not in page.read_text()


def test_the_page_gives_the_measured_accuracy_of_each_window_with_labels(run, kept, tmp_path):
    day = stream(kept, tmp_path, "day.csv", 9)
    bare = tmp_path / "bare.csv"
    pd.read_csv(day).drop(columns="survived").to_csv(bare, index=False)
    model, state, page = kept / "model.dipedl", tmp_path / "state", tmp_path / "page.html"
    run("monitor", model, day, "--state", state, "--window", 300, "-q")
    run("monitor", model, bare, "--state", state, "--page", page, "-q")
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", page.read_text())
    cells = {row[0]: row[-2:] for row in (re.findall(r">([^<>]*)</t[hd]>", row) for row in rows)}
    run("score", model, day, "--out", tmp_path / "a.csv")
    right = pd.read_csv(tmp_path / "a.csv")["label"] == pd.read_csv(day)["survived"]
    assert cells["1 to 300"][0] == f"{right[:300].mean():.3f}"
    assert cells["301 to 600"][0] == f"{right[300:].mean():.3f}"
    assert cells["601 to 900"][0] == cells["901 to 1,200"][0] == ""
    assert all(0.5 < float(cells[name][1]) < 1 for name in ("1 to 300", "901 to 1,200"))


@pytest.mark.slow
def test_monitors_of_one_state_wait_for_each_other_and_lose_no_row(kept, tmp_path):
    state = tmp_path / "state"
    days = [stream(kept, tmp_path, f"{i}.csv", 20 + i, n=60) for i in range(2)]
    command = [sys.executable, "-m", "dipedl", "monitor", kept / "model.dipedl"]
    running = [subprocess.Popen([*command, day, "--state", state, "-q"]) for day in days]
    assert [process.wait(300) for process in running] == [0] * 2
    assert load(state).rows_ == 120 and load(state).batches_ == 2


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


@pytest.mark.parametrize("values", [[7], [0, 1], [1, 2, 3], list(range(30))])
def test_a_column_of_few_values_is_watched(values):
    """A column of two or three values moves to the last of them, or beyond: windows say so."""
    rng = np.random.default_rng(0)
    column = learn_column("c", rng.choice(values, 2000).astype(float))
    same, moved = (
        count_rows(column, rows)
        for rows in (
            rng.choice(values, 500) * 1.0,
            np.full(500, values[-1] + 1.0 * (len(values) == 1)),
        )
    )
    assert same.sum() == moved.sum() == 500
    usual = column.counts
    assert compare_counts(usual, same)[1] > 1e-4 and compare_counts(usual, moved)[1] < 1e-9
