"""Answers at scale are those of ``dipedl score``, whatever the engine, the cuts and the faults."""

import errno
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

from dipedl import DIPClassifier, density
from dipedl.apps.large import LocalEngine, parts_of, plan, score, scoring
from dipedl.apps.table import writing
from dipedl.apps.table.errors import UserError
from dipedl.apps.table.score import ScoreRequest
from passengers import passengers


def answers_in(folder):
    """Answers by file of the data, its parts in order."""
    found = {}
    for file in sorted(folder.rglob("*.parquet")):
        name = file.relative_to(folder).as_posix()
        if not name.startswith("_"):
            whole = name.removesuffix(".parquet").partition("-")[0] + ".parquet"
            found.setdefault(whole, []).append(pd.read_parquet(file))
    return {name: pd.concat(parts, ignore_index=True) for name, parts in found.items()}


def check_equal(found, answers):
    assert sorted(found) == sorted(answers)
    for name, frame in answers.items():
        pd.testing.assert_frame_equal(found[name], frame, rtol=1e-12, atol=1e-12)


@pytest.fixture
def new(kept, tmp_path):
    """A copy of the data that a test may change."""
    return Path(shutil.copytree(kept / "new", tmp_path / "new"))


def corrupted(file):
    file.write_bytes(file.read_bytes()[:-50])


@pytest.mark.parametrize(
    ("engine", "partitions"),
    [(LocalEngine(), "2KB"), pytest.param(LocalEngine(2), 17, marks=pytest.mark.slow)],
)
def test_answers_do_not_depend_on_engine_and_cuts(kept, answers, tmp_path, engine, partitions):
    out, seen = tmp_path / "out", []
    found = score(
        kept / "model.dipedl",
        kept / "new",
        out,
        engine=engine,
        partitions=partitions,
        progress=lambda rows, done: seen.append((rows, done)),
    )
    check_equal(answers_in(out), answers)
    assert (found.rows, found.answered, found.refused) == (200, 200, 0)
    assert found.flagged == sum(frame["flagged"].sum() for frame in answers.values())
    assert seen[-1] == (200, 1.0) and len(seen) == found.parts
    assert json.loads((out / "_accounting.json").read_text())["rows"] == 200


def test_rows_at_once_do_not_matter(kept, answers, tmp_path, monkeypatch):
    monkeypatch.setattr(scoring, "BATCH", 7)
    found = score(kept / "model.dipedl", kept / "new" / "ship=a" / "0.parquet", tmp_path / "out")
    check_equal(answers_in(tmp_path / "out"), {"0.parquet": answers["ship=a/0.parquet"]})
    assert found.rows == 40


def test_arrays_and_frames_for_a_model_without_a_table(rng, tmp_path):
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] > 0).astype(int)
    from sklearn.linear_model import LogisticRegression

    clf = DIPClassifier(LogisticRegression(), density.GDADensity()).fit(X, y)
    np.save(tmp_path / "x.npy", X)
    for held, out in ((X, "a"), (tmp_path / "x.npy", "b"), (pd.DataFrame(X), "c")):
        assert score(clf, held, tmp_path / out, partitions=50).rows == 120
        found = pd.concat(pd.read_parquet(f) for f in sorted((tmp_path / out).glob("*.parquet")))
        np.testing.assert_allclose(found[["p_0", "p_1"]], clf.predict_proba(X), rtol=1e-12)
        want = clf.predict_dirichlet(X).log_evidence
        np.testing.assert_allclose(found["log_evidence"], want, rtol=1e-12)
    assert score(clf, X[:, :2], tmp_path / "d").failed == {
        "rows-00000": "the rows have 2 columns, and the model knows 3"
    }


def test_bad_rows_and_files_are_told_and_the_rest_is_answered(kept, new, answers, tmp_path):
    words = passengers(40, seed=10)
    words["age"] = [None if np.isnan(age) else str(age) for age in words["age"]]
    words.loc[3, "age"] = "old"
    words.to_parquet(new / "ship=a" / "0.parquet", index=False)
    corrupted(new / "ship=b" / "1.parquet")
    passengers(40, seed=12).drop(columns="fare").to_parquet(new / "ship=a" / "2.parquet")
    passengers(40, seed=13).assign(age=None).to_parquet(new / "ship=b" / "3.parquet")
    passengers(0).to_parquet(new / "ship=a" / "5.parquet")
    out = tmp_path / "out"
    found = score(kept / "model.dipedl", new, out)
    assert (found.rows, found.answered, found.refused) == (160, 119, 41)
    assert sorted(found.failed) == ["ship=a/2", "ship=b/1"]
    assert "lacks the column 'fare'" in found.failed["ship=a/2"]
    assert "cannot be read" in found.failed["ship=b/1"]
    refused = pd.read_parquet(out / "_refused" / "ship=a" / "0.parquet")
    assert refused.values.tolist() == [[4, "age", "'old' is no finite number"]]
    got = answers_in(out)
    assert sorted(got) == ["ship=a/0.parquet", "ship=a/4.parquet", "ship=b/3.parquet"]
    assert len(got["ship=b/3.parquet"]) == 40
    pd.testing.assert_frame_equal(got["ship=a/4.parquet"], answers["ship=a/4.parquet"])


def test_only_what_is_not_finished_is_done_again(kept, new, answers, tmp_path, monkeypatch):
    out = tmp_path / "out"
    good = (new / "ship=b" / "1.parquet").read_bytes()
    corrupted(new / "ship=b" / "1.parquet")
    score(kept / "model.dipedl", new, out)
    (new / "ship=b" / "1.parquet").write_bytes(good)
    (out / "ship=a" / "2.parquet").unlink()
    (out / ".dipedl-0.part").touch()
    asked, whole = [], scoring.Scorer._answer
    monkeypatch.setattr(
        scoring.Scorer, "_answer", lambda self, p: asked.append(p.name) or whole(self, p)
    )
    found = score(kept / "model.dipedl", new, out, resume=True)
    assert asked == ["ship=a/2", "ship=b/1"]
    assert (found.rows, found.parts, found.resumed, found.failed) == (200, 5, 3, {})
    check_equal(answers_in(out), answers)
    assert not list(out.rglob("*.part"))


def flipped(file):
    """One bit of a file, in its middle, is another."""
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


def test_a_damaged_file_is_not_finished(kept, new, answers, tmp_path):
    words = passengers(40, seed=10).astype({"age": object})
    words["age"] = ["old", *words["age"].astype(str)[1:]]
    words.to_parquet(new / "ship=a" / "0.parquet", index=False)
    out, model = tmp_path / "out", kept / "model.dipedl"
    whole = score(model, new, out)
    refused, record = out / "_refused" / "ship=a", out / "_parts" / "ship=b"
    damages = [
        lambda: flipped(out / "ship=a" / "4.parquet"),
        lambda: (refused / "0.parquet").unlink(),
        lambda: (record / "1.json").write_bytes(b"{}"),
        lambda: shutil.copy(record / "3.json", record / "1.json"),
        lambda: shutil.copy(out / "ship=a" / "2.parquet", out / "ship=a" / "4.parquet"),
        lambda: shutil.copytree(refused, out / "_refused" / "ship=b"),
    ]
    for damage in damages:
        damage()
        if (planted := out / "_refused" / "ship=b" / "0.parquet").exists():
            planted.rename(planted.with_name("1.parquet"))
        found = score(model, new, out, resume=True)
        assert found.resumed in (3, 4)
        assert replace(found, resumed=0) == whole
        got = answers_in(out)
        assert len(got.pop("ship=a/0.parquet")) == 39
        check_equal(got, {name: of for name, of in answers.items() if name in got})
        assert len(got) == 4
        assert [at.name for at in (out / "_refused").rglob("*.parquet")] == ["0.parquet"]
        assert len(pd.read_parquet(refused / "0.parquet")) == 1
    assert score(model, new, out, resume=True).resumed == 5


def test_other_rows_of_the_same_size_and_time_have_no_old_answers(kept, tmp_path):
    new, out, model = tmp_path / "new", tmp_path / "out", kept / "model.dipedl"
    new.mkdir()
    for name in "ab":
        passengers(40, seed=3).to_parquet(new / f"{name}.parquet", index=False, compression=None)
    score(model, new, out)
    at = new / "a.parquet"
    old = at.stat()
    turned = passengers(40, seed=3).assign(age=lambda frame: frame["age"].to_numpy()[::-1])
    turned.to_parquet(at, index=False, compression=None)
    os.utime(at, ns=(old.st_atime_ns, old.st_mtime_ns))
    assert at.stat().st_size == old.st_size
    with pytest.raises(UserError, match="data have changed since, first in 'a'"):
        score(model, new, out, resume=True)
    passengers(40, seed=3).to_parquet(at, index=False, compression=None)
    assert score(model, new, out, resume=True).resumed == 2


@pytest.mark.parametrize("choice", ["resume", "overwrite"])
def test_what_a_folder_says_of_itself_is_believed_if_it_is_whole(kept, tmp_path, choice):
    out, data = tmp_path / "out", kept / "new" / "ship=a"
    score(kept / "model.dipedl", data, out)
    own = tmp_path / "own.parquet"
    own.touch()
    said = out / "_dipedl.json"
    _, _, text = said.read_text("utf-8").partition(" ")
    planted = json.loads(text)
    planted["parts"]["../own"] = [0, 0, "", False]
    planted = json.dumps(planted)
    planted = f"{hashlib.sha256(planted.encode()).hexdigest()} {planted}"
    for content in (planted, text, text.replace("0", "1", 1), "", "{}"):
        said.write_text(content, "utf-8")
        with pytest.raises(UserError, match="is damaged"):
            score(kept / "model.dipedl", data, out, **{choice: True})
        assert own.exists()


def test_answers_of_something_else_are_not_mixed(kept, new, tmp_path):
    model, out = kept / "model.dipedl", tmp_path / "out"
    score(model, new, out)
    with pytest.raises(UserError, match=r"holds answers already: resume=True .* overwrite=True"):
        score(model, new, out)
    other = tmp_path / "other.dipedl"
    shutil.copy(model, other)
    with open(other, "ab") as file:
        file.write(b"\0")
    from dipedl.apps.table.table_model import read_model

    with pytest.raises(UserError, match="by another model"):
        score(read_model(model), new, out, resume=True)
    with pytest.raises(UserError, match="other columns"):
        score(model, new, out, resume=True, wanted=ScoreRequest(["name"]))
    with pytest.raises(UserError, match="cut into parts of another size"):
        score(model, new, out, resume=True, partitions=20)
    passengers(40, seed=3).to_parquet(new / "ship=a" / "0.parquet")
    with pytest.raises(UserError, match="data have changed since, first in 'ship=a/0'"):
        score(model, new, out, resume=True)
    (out / "mine.txt").touch()
    found = score(model, new, out, overwrite=True, partitions=20)
    assert (found.rows, found.resumed) == (200, 0) and (out / "mine.txt").exists()
    assert not (out / "ship=a" / "0.parquet").exists()


def test_answers_to_rows_that_a_file_no_longer_has_do_not_stay(kept, new, tmp_path):
    model, out, new = kept / "model.dipedl", tmp_path / "out", new / "ship=b"
    score(model, new, out, partitions=20)
    corrupted(new / "3.parquet")
    found = score(model, new, out, partitions=20, resume=True)
    assert (found.rows, found.resumed, list(found.failed)) == (40, 3, ["3"])
    assert not list(out.rglob("3-0*"))
    passengers(10, seed=77).to_parquet(new / "3.parquet", index=False)
    found = score(model, new, out, partitions=20, resume=True)
    assert (found.rows, found.answered, found.resumed) == (50, 50, 3)
    score(model, new, tmp_path / "fresh", partitions=20)
    check_equal(answers_in(out), answers_in(tmp_path / "fresh"))


def test_a_part_that_was_another_when_it_was_finished_is_not_finished(kept, tmp_path):
    from dipedl.apps.large.scoring import AnswersFolder

    part = parts_of(np.zeros((10, 2)))[0]
    folder = AnswersFolder(tmp_path)
    folder.finish(part, {"answered": 0})
    assert folder.record(part) == {"answered": 0}
    for other in ({"origin": "in memory 0"}, {"first": 5}, {"rows": 9}):
        assert folder.record(replace(part, **other)) is None


def test_a_bad_file_excuses_no_other_whose_name_is_alike(kept, tmp_path):
    model, new, out = kept / "model.dipedl", tmp_path / "new", tmp_path / "out"
    new.mkdir()
    for i in range(3):
        passengers(20, seed=i).to_parquet(new / f"part-0000{i}.parquet", index=False)
    good = (new / "part-00000.parquet").read_bytes()
    corrupted(new / "part-00000.parquet")
    score(model, new, out)
    (new / "part-00000.parquet").write_bytes(good)
    passengers(20, seed=9).to_parquet(new / "part-00001.parquet", index=False)
    with pytest.raises(UserError, match="data have changed since, first in 'part-00001'"):
        score(model, new, out, resume=True)


def test_beginning_again_deletes_answers_that_have_no_record(kept, new, tmp_path):
    model, out = kept / "model.dipedl", tmp_path / "out"
    score(model, new / "ship=b", out, partitions=20)
    (out / "_parts" / "1-00001.json").unlink()
    found = score(model, new / "ship=b", out, overwrite=True)
    assert found.rows == 80 and not list(out.rglob("1-0*"))


def test_a_model_is_the_same_after_it_has_answered_and_as_a_copy(rng, tmp_path):
    from sklearn.linear_model import SGDClassifier

    X = rng.normal(size=(300, 3))
    y = (X[:, 0] > 0).astype(int)
    clf = DIPClassifier(SGDClassifier(loss="log_loss", random_state=0)).partial_fit(X, y)
    score(clf, X, tmp_path / "out")
    clf.explain(X[:2])
    for same in (clf, pickle.loads(pickle.dumps(clf))):
        assert score(same, X, tmp_path / "out", resume=True).resumed == 1
    with pytest.raises(UserError, match="by another model"):
        score(clf.partial_fit(X, y), X, tmp_path / "out", resume=True)


def test_a_folder_of_others_is_left_alone(kept, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").touch()
    for choice in ({}, {"overwrite": True}, {"resume": True}):
        with pytest.raises(UserError, match="holds other files"):
            score(kept / "model.dipedl", kept / "new", tmp_path / "out", **choice)


def test_a_full_disk_leaves_nothing_that_looks_complete(kept, answers, tmp_path, monkeypatch):
    out, whole = tmp_path / "out", writing.whole_file
    written = []

    class Full:
        def __init__(self, file):
            self.file, self.closed = file, False

        def write(self, data):
            raise OSError(errno.ENOSPC, "No space left on device")

        def __getattr__(self, name):
            return getattr(self.file, name)

    from contextlib import contextmanager

    @contextmanager
    def full_at_the_third(path):
        written.append(path)
        with whole(path) as file:
            yield Full(file) if len(written) == 3 else file

    monkeypatch.setattr(writing, "whole_file", full_at_the_third)
    with pytest.raises(UserError, match=r"No space left.*Free space"):
        score(kept / "model.dipedl", kept / "new", out)
    there = [file for file in out.rglob("*") if file.suffix in (".parquet", ".part")]
    assert len(there) == 2 and not (out / "_accounting.json").exists()
    monkeypatch.setattr(writing, "whole_file", whole)
    found = score(kept / "model.dipedl", kept / "new", out, resume=True)
    assert (found.resumed, found.rows) == (2, 200)
    check_equal(answers_in(out), answers)


def test_where_memory_runs_out_the_part_has_failed(kept, tmp_path, monkeypatch):
    def large(*arguments):
        raise MemoryError

    monkeypatch.setattr(scoring, "answer_rows", large)
    found = score(kept / "model.dipedl", kept / "new", tmp_path / "out")
    assert (found.answered, found.refused) == (0, 200)
    assert len(found.failed) == 5 and "memory ran out" in found.failed["ship=a/0"]


def test_the_plan_says_parts_and_rows_and_writes_nothing(kept, new):
    corrupted(new / "ship=b" / "1.parquet")
    found = plan(kept / "model.dipedl", new, partitions=15)
    assert (found.parts, found.rows, found.unreadable) == (13, 160, 1)
    assert found.seconds > 0 and found.worker > 1 << 20


DRIVER = """
import os, sys
from dipedl.apps.large import score, scoring
whole = scoring.Scorer.pieces
def slow(self, part):
    for piece in whole(self, part):
        yield piece
        if part.name.endswith("2"):
            print("writing", flush=True)
            sys.stdin.read()
scoring.Scorer.pieces = slow
score(sys.argv[1], sys.argv[2], sys.argv[3])
"""


@pytest.mark.slow
def test_a_killed_run_is_resumed(kept, answers, tmp_path):
    out = tmp_path / "out"
    arguments = [sys.executable, "-c", DRIVER, kept / "model.dipedl", kept / "new", out]
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:
        assert driver.stdout.readline() == b"writing\n"
        with pytest.raises(UserError, match="being written by another process"):
            score(kept / "model.dipedl", kept / "new", out, resume=True)
        driver.kill()
    assert sorted(answers_in(out)) == ["ship=a/0.parquet"] and list(out.rglob("*.part"))
    found = score(kept / "model.dipedl", kept / "new", out, resume=True)
    assert (found.resumed, found.rows, found.answered) == (1, 200, 200)
    check_equal(answers_in(out), answers)
