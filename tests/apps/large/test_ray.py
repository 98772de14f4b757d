"""Ray gives what one machine gives, also when its workers die."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

pytest.importorskip("pyarrow")
if find_spec("ray") is None:
    pytest.skip("needs ray", allow_module_level=True)

from test_scoring import answers_in, check_equal

from dipedl.apps.large import RayEngine, engines, score, scoring
from dipedl.apps.large.scoring import Scorer
from dipedl.apps.table.errors import UserError


def silent(greeting):
    """A port where a server greets, and then says nothing more."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        with suppress(OSError), server:
            while True:
                server.accept()[0].sendall(greeting)

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("cluster", "address must be host:port"),
        ("127.0.0.1:9", r"no Ray cluster answers at 127\.0\.0\.1:9.*ray start --head"),
    ],
)
def test_an_address_where_nothing_listens_is_refused(address, reason):
    with pytest.raises(UserError, match=reason):
        RayEngine(address)


@pytest.mark.slow
@pytest.mark.parametrize("greeting", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"])
def test_a_server_that_is_no_ray_is_not_waited_for(greeting, monkeypatch):
    monkeypatch.setattr(engines, "_LIMIT", 4.0)
    start = time.monotonic()
    with pytest.raises(UserError, match="no Ray cluster answers at"):
        RayEngine(f"127.0.0.1:{silent(greeting)}")
    assert time.monotonic() - start < 10


def kill_two(folder):
    while len(pids := [int(file.name[4:]) for file in folder.glob("pid-*")]) < 2:
        time.sleep(0.05)
    for pid in pids[:2]:
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def killer(tmp_path):
    thread = threading.Thread(target=kill_two, args=(tmp_path,), daemon=True)
    thread.start()
    yield tmp_path
    thread.join(1)
    assert not thread.is_alive(), "nobody was killed: the test proves nothing"


class MortalScorer(Scorer):
    """Can be killed after it has written the answers to a part, before it says so."""

    def _answer(self, part):
        count = super()._answer(part)
        (self.folder.path.parent / f"pid-{os.getpid()}").touch()
        time.sleep(0.2)
        return count


@pytest.mark.slow
def test_two_killed_workers_lose_no_row_and_count_none_twice(
    ray_engine, killer, kept, answers, monkeypatch
):
    monkeypatch.setattr(scoring, "Scorer", MortalScorer)
    found = score(
        kept / "model.dipedl", kept / "new", killer / "out", engine=ray_engine, partitions=15
    )
    assert (found.rows, found.answered, found.parts, found.failed) == (200, 200, 15, {})
    check_equal(answers_in(killer / "out"), answers)


class DeadlyScorer(Scorer):
    """No worker survives one of the parts."""

    def _answer(self, part):
        if part.name == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._answer(part)


@pytest.mark.slow
def test_a_part_that_kills_its_workers_is_told_and_the_rest_is_answered(
    ray_engine, kept, answers, tmp_path, monkeypatch
):
    monkeypatch.setattr(scoring, "Scorer", DeadlyScorer)
    monkeypatch.setattr(engines, "_RETRIES", 0)
    new, out = kept / "new" / "ship=b", tmp_path / "out"
    found = score(kept / "model.dipedl", new, out, engine=ray_engine)
    assert (found.rows, found.answered, found.refused) == (80, 40, 40)
    assert list(found.failed) == ["1"]
    assert "its worker died again and again" in found.failed["1"]
    check_equal(answers_in(out), {"3.parquet": answers["ship=b/3.parquet"]})


def kill_seven(task):
    if task == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_an_error_in_the_end(ray_engine, monkeypatch):
    monkeypatch.setattr(engines, "_RETRIES", 1)
    done = []
    with pytest.raises(UserError, match=r"a task: its worker died again and again.*partitions"):
        for number, _ in ray_engine.map(kill_seven, range(5, 10)):
            done.append(number)
    assert {0, 1} <= set(done) <= {0, 1, 3, 4}  # the task is tried again while the others run


class Foreign:
    """A function that another process cannot load, as one of a module that is not there."""

    def __reduce__(self):
        return loaded_in, (os.getpid(),)

    def __call__(self, task):
        return task


def loaded_in(pid):
    if os.getpid() != pid:
        raise ModuleNotFoundError("No module named 'own'")
    return Foreign()


@pytest.mark.slow
def test_a_worker_that_cannot_be_made_is_not_told_as_one_that_died(ray_engine):
    told = r"^Ray cannot make a worker: ModuleNotFoundError: No module named 'own'; install on each"
    with pytest.raises(UserError, match=told):
        list(ray_engine.map(Foreign(), range(2)))


@pytest.mark.parametrize(
    ("asked", "there", "expected"),
    [(None, {"CPU": 3.0}, 3), (2, {"CPU": 3.0}, 2), (5, {"CPU": 3.0}, 3)],
)
def test_there_are_no_more_workers_than_the_cluster_has_room_for(on, asked, there, expected):
    assert on(there, asked).workers == expected


def test_a_cluster_without_a_cpu_is_told(on):
    with pytest.raises(UserError, match=r"has 0 CPUs, and each worker needs one: .* --num-cpus"):
        _ = on({"GPU": 8.0}, 2).workers


@pytest.fixture
def on(monkeypatch):
    """Return an engine on a cluster with some resources."""

    def engine(resources, workers):
        ray = {"is_initialized": lambda: True, "cluster_resources": lambda: resources}
        monkeypatch.setattr(engines, "optional", lambda *_: SimpleNamespace(**ray))
        return RayEngine(workers=workers)

    return engine


@pytest.mark.slow
def test_ray_answers_like_one_machine(ray_engine, kept, answers, tmp_path):
    for partitions in (None, 20):
        out = tmp_path / f"out-{partitions}"
        found = score(
            kept / "model.dipedl", kept / "new", out, engine=ray_engine, partitions=partitions
        )
        check_equal(answers_in(out), answers)
        assert (found.rows, found.answered, found.failed) == (200, 200, {})


@pytest.mark.slow
def test_the_command_joins_a_cluster_by_its_address(ray_engine, kept, answers, tmp_path):
    address = ray_engine._ray.get_runtime_context().gcs_address
    command = ["score", kept / "model.dipedl", kept / "new", "--out", tmp_path / "out"]
    options = ["--engine", "ray", "--address", address, "--reasons", "none", "--quiet"]
    run = subprocess.run(
        [sys.executable, "-m", "dipedl", *command, *options], capture_output=True, text=True
    )
    assert run.returncode == 0 and "200 answered" in run.stdout, run.stderr
    assert "error" not in run.stderr.lower()
    check_equal(answers_in(tmp_path / "out"), answers)
    assert ray_engine.workers == 2, "the cluster was ended by one who had only joined it"
