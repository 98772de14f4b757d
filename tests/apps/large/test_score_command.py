"""``dipedl score`` of a data set in parts."""

import json
import shutil

import pandas as pd
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")

from test_scoring import answers_in, check_equal
from typer.testing import CliRunner

from passengers import passengers


@pytest.fixture
def run(tmp_path, monkeypatch):
    """The command, in this process and in a folder of its own."""
    from dipedl.apps.cli.app import app

    monkeypatch.chdir(tmp_path)
    return lambda *arguments: CliRunner().invoke(app, [str(a) for a in arguments])


def test_a_folder_is_answered_into_a_folder(run, kept, answers, tmp_path):
    arguments = ("score", kept / "model.dipedl", kept / "new", "--reasons", "none")
    done = run(*arguments, "--workers", 1)
    assert done.exit_code == 0, done.output
    check_equal(answers_in(tmp_path / "answers"), answers)
    assert "Parts:    5\n" in done.output and "Rows:     200 = 200 answered + 0" in done.output
    again = run(*arguments, "--workers", 1)
    assert again.exit_code == 1 and "--resume finishes them" in again.output
    resumed = run(*arguments, "--workers", 1, "--resume")
    assert resumed.exit_code == 0
    assert "Parts:    5, 5 of them by an earlier run\n" in resumed.output


def test_a_file_in_parts_and_its_refusals_as_json(run, kept, tmp_path):
    rows = passengers(50, seed=4).astype({"fare": object})
    rows["fare"] = rows["fare"].astype(str).where(rows.index != 30, "free")
    rows.to_parquet("new.parquet")
    done = run(
        "score", kept / "model.dipedl", "new.parquet", "--partitions", 20, "--out", "o", "--json",
        "--engine", "local", "--workers", 1, "--quiet",
    )  # fmt: skip
    assert done.exit_code == 3
    found = json.loads(done.stdout)
    assert (found["rows"], found["answered"], found["refused"], found["parts"]) == (50, 49, 1, 3)
    refused = pd.read_parquet(tmp_path / "o" / "_refused" / "new-00001.parquet")
    assert refused["row"].tolist() == [31] and "row 31, column 'fare'" in done.stderr
    one = pd.read_parquet(tmp_path / "o" / "new-00002.parquet")
    assert one["row"].tolist() == list(range(34, 51)) and "log_evidence" in one


def test_a_file_that_cannot_be_read_is_named_and_the_exit_code_says_so(run, kept, tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "bad.parquet").write_bytes(b"PAR1 and no more")
    passengers(30).to_parquet(tmp_path / "new" / "good.parquet")
    done = run("score", kept / "model.dipedl", "new", "--workers", 1)
    assert done.exit_code == 3 and "Rows:     30 = 30 answered" in done.output
    assert "failed: bad:" in done.output and "cannot be read" in done.output


def test_a_list_of_refused_rows_is_named_only_where_there_is_one(run, kept, tmp_path):
    at = tmp_path / "bad.parquet"
    passengers(5).drop(columns="fare").to_parquet(at)
    arguments = ("score", kept / "model.dipedl", at, "--out", "o", "--workers", 1)
    done = run(*arguments)
    assert done.exit_code == 3 and "lacks the column 'fare'" in done.output
    assert "refused rows:" not in done.output and not (tmp_path / "o" / "_refused").exists()
    assert json.loads(run(*arguments, "--resume", "--json").stdout)["refused_out"] is None


def test_a_dry_run_tells_and_writes_nothing(run, kept, tmp_path):
    arguments = ("score", kept / "model.dipedl", kept / "new", "--workers", 2, "--dry-run")
    told = run(*arguments).output
    assert "Parts:    5, with 200 rows" in told and "for each of 2 workers" in told
    found = json.loads(run(*arguments, "--json").stdout)
    assert (found["rows"], found["workers"]) == (200, 2) and found["seconds"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--resume", "--overwrite"), "--resume and --overwrite exclude each other"),
        (("--engine", "spark"), "--engine must be local or ray, got 'spark'"),
        (("--address", "auto"), "--address belongs to --engine ray"),
        (("--out", "a.csv"), "a folder of Parquet files"),
        (("--partitions", "many"), "partitions must be rows"),
        (("--delimiter", ";"), "--delimiter is for a CSV file"),
    ],
)
def test_odd_options_are_refused(run, kept, options, said):
    done = run("score", kept / "model.dipedl", kept / "new", *options)
    assert done.exit_code == 2 and said in done.output


def test_options_of_parts_are_refused_where_there_are_none(run, kept):
    held = ("--proba", "p.csv", "--held-out-proba", "h.csv")
    done = run("score", *held, "--engine", "local")
    assert done.exit_code == 2 and "--engine is for tables in parts" in done.output


def test_a_dry_run_passes_over_a_part_that_cannot_be_read(run, kept, tmp_path):
    shutil.copytree(kept / "new", tmp_path / "new")
    largest = tmp_path / "new" / "large.parquet"
    passengers(60, seed=1).to_parquet(largest, index=False)
    content = bytearray(largest.read_bytes())
    content[4:2000] = bytes(1996)
    largest.write_bytes(content)
    done = run("score", kept / "model.dipedl", "new", "--dry-run", "--workers", 1)
    assert done.exit_code == 0, done.output
    assert "1 files cannot be read" in done.output and "measured on 40 rows" in done.output


def test_errors_of_the_library_name_the_options_that_give_its_arguments():
    from dipedl.apps.cli.terminal import with_options

    said = with_options("leave out: drop=['a, b', 'c']; resume=True finishes, overwrite=True not")
    assert said == "leave out: --drop '\"a, b\",c'; --resume finishes, --overwrite not"
