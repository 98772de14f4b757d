"""No command writes over a file that it reads, under whatever name."""

import os
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from dipedl.apps.table.score import refused_path
from passengers import passengers


@pytest.fixture
def files(kept, tmp_path, monkeypatch):
    """A folder with a model and tables, and links to them, to be in."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.dipedl").write_bytes((kept / "model.dipedl").read_bytes())
    for name in ("new.csv", "new.refused.csv", "other.csv", "proba.csv", "held.csv"):
        passengers(30, seed=1).to_csv(name, index=False)
    (tmp_path / "m.skops").write_bytes(b"a classifier")
    os.symlink("new.csv", "link.csv")
    os.symlink("m.dipedl", "link.html")
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "score m.dipedl new.csv --out new.csv",
        "score m.dipedl new.csv --out ./link.csv",
        "score m.dipedl link.csv --out new.csv",
        "score m.dipedl new.refused.csv --out new.csv",
        "score m.dipedl . --out new.csv",
        "score m.dipedl new*.csv --out new.csv",
        "score --proba proba.csv --held-out-proba held.csv --out proba.csv",
        "score --proba proba.csv --held-out-proba held.csv --out held.csv",
        "score --proba proba.csv --features new.csv --held-out-proba held.csv "
        "--held-out-features other.csv --out other.csv",
        "fit new.csv --target survived --out new.csv",
        "fit new.csv --target survived --model m.skops --out m.skops",
        "report m.dipedl new.csv --out new.csv",
        "report m.dipedl new.csv --ood other.csv --out other.csv",
        "report m.dipedl new.csv --out link.html",
        "monitor m.dipedl new.csv --state new.csv",
        "monitor m.dipedl new.csv --page link.html",
    ],
)
def test_an_output_that_is_an_input_is_refused(run, files, command):
    before = {p.name: p.read_bytes() for p in files.iterdir()}
    done = run(*command.split())
    assert done.exit_code == 1, done.output
    assert "would destroy the input" in done.stderr and "choose another file" in done.stderr
    assert {p.name: p.read_bytes() for p in files.iterdir()} == before


@pytest.mark.parametrize(
    ("out", "refused"),
    [
        ("s.2.csv", "s.2.refused.csv"),
        ("s.3.csv", "s.3.refused.csv"),
        ("s.3.CSV.gz", "s.3.refused.csv"),
        ("2026.11.parquet", "2026.11.refused.csv"),
    ],
)
def test_each_output_has_its_own_list_of_refused_rows(out, refused):
    assert refused_path(Path("in") / out) == Path("in") / refused
