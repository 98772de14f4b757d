"""Ray gives what one machine gives, also when its workers die."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, suppress
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("ray")

from test_engines import Held, draw, inverse
from test_scoring import answers_in, check_equal

from dipedl.apps.large import LocalEngine, RayEngine, parts_of, score, scoring
from dipedl.apps.large import ray as ray_module
from dipedl.apps.large.scoring import Scorer
from dipedl.apps.table.errors import UserError


def test_an_address_where_nothing_answers_is_told_soon():
    with closing(socket.socket()) as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        port = deaf.getsockname()[1]
        deaf.settimeout(10)
        threading.Thread(target=lambda: deaf.accept()[0].close(), daemon=True).start()
        start = time.monotonic()
        with pytest.raises(UserError, match=r"no Ray cluster answers at 127\.0\.0\.1"):
            RayEngine(f"127.0.0.1:{port}")
    with pytest.raises(UserError, match="start one by ray start --head"):
        RayEngine(f"127.0.0.1:{port}")
    with pytest.raises(UserError, match="address must be host:port"):
        RayEngine("cluster")
    assert time.monotonic() - start < 15


def silent(greeting):
    """A port where a server greets, and then says nothing more."""
    server = socket.create_server(("127.0.0.1", 0))

    def serve():
        with suppress(OSError), server, server.accept()[0] as connection:
            connection.sendall(greeting)
            while connection.recv(1000):
                pass

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]


@pytest.mark.parametrize(
    ("greeting", "why"),
    [
        pytest.param(b"", "timed out", marks=pytest.mark.slow),
        pytest.param(bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]), "timed out", marks=pytest.mark.slow),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "something else listens there"),
    ],
    ids=["mute", "HTTP/2", "HTTP/1"],
)
def test_a_server_that_is_silent_is_told_soon(greeting, why):
    start = time.monotonic()
    with pytest.raises(UserError, match=rf"no Ray cluster answers at .*\({why}\)"):
        RayEngine(f"127.0.0.1:{silent(greeting)}")
    assert time.monotonic() - start < 15


def test_ray_is_told_to_ask_a_few_times_before_it_is_imported(monkeypatch):
    from dipedl.apps.large import ray

    class Imported(Exception):
        pass

    def stops(*_):
        raise Imported(os.environ["RAY_NUM_REDIS_GET_RETRIES"])

    monkeypatch.setenv("RAY_NUM_REDIS_GET_RETRIES", "")
    monkeypatch.delenv("RAY_NUM_REDIS_GET_RETRIES")
    monkeypatch.setattr(ray, "optional", stops)
    with pytest.raises(Imported, match=r"^5$"):
        RayEngine("auto")
    monkeypatch.setenv("RAY_NUM_REDIS_GET_RETRIES", "9")
    with pytest.raises(Imported, match=r"^9$"):
        RayEngine("auto")


class Mortal:
    """Two of its workers are killed, at the same time, while they work."""

    def __init__(self, folder):
        self.folder = folder

    def __call__(self, task):
        (self.folder / f"pid-{os.getpid()}").touch()
        time.sleep(0.2)
        return draw(task)


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


@pytest.mark.slow
def test_ray_maps_each_task_once_by_a_function_that_is_held(ray_engine):
    found = dict(ray_engine.map(Held(), "abcdefgh"))
    assert [found[i][2] for i in range(8)] == list("abcdefgh")
    last = {}
    for pid, calls, _ in found.values():
        last[pid] = max(calls, last.get(pid, 0))
    assert sum(last.values()) == 8 and os.getpid() not in last
    assert list(ray_engine.map(draw, [])) == []


@pytest.mark.slow
def test_ray_sums_like_one_machine_to_the_last_bit(ray_engine):
    done = []
    found = ray_engine.reduce(draw, range(11), np.add, done.append)
    np.testing.assert_array_equal(found, LocalEngine().reduce(draw, range(11), np.add))
    assert sorted(done) == list(range(11))
    with pytest.raises(ValueError, match="at least one task"):
        ray_engine.reduce(draw, [], np.add)
    with pytest.raises(ZeroDivisionError, match=r"^division by zero$"):
        ray_engine.reduce(inverse, [1, 0], np.add)
    with pytest.raises(ZeroDivisionError, match=r"^division by zero$"):
        list(ray_engine.map(inverse, [1, 0]))


@pytest.mark.slow
def test_two_killed_workers_change_no_sum(ray_engine, killer):
    found = ray_engine.reduce(Mortal(killer), range(12), np.add)
    np.testing.assert_array_equal(found, LocalEngine().reduce(draw, range(12), np.add))


class MortalScorer(Scorer):
    """Can be killed after it has written the answers to a part, before it says so."""

    def _answered(self, part):
        count = super()._answered(part)
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
    """Memory of its workers is enough for 2,000 rows at once, and of one part for none."""

    def _answered(self, part):
        if self.batch > 2000 or part.name == "1":
            os.kill(os.getpid(), signal.SIGKILL)
        return super()._answered(part)


@pytest.mark.slow
def test_a_part_that_kills_its_workers_is_told_and_the_rest_is_answered(
    ray_engine, kept, answers, tmp_path, monkeypatch
):
    monkeypatch.setattr(scoring, "Scorer", DeadlyScorer)
    monkeypatch.setattr(ray_module, "_RETRIES", 0)
    new, out = kept / "new" / "ship=b", tmp_path / "out"
    found = score(kept / "model.dipedl", new, out, engine=ray_engine)
    assert (found.rows, found.answered, found.refused) == (80, 40, 40)
    assert list(found.failed) == ["1"] and found.smaller_batches == {"3": 2000}
    assert "its worker died again and again" in found.failed["1"]
    check_equal(answers_in(out), {"3.parquet": answers["ship=b/3.parquet"]})


def kill_seven(task):
    if task == 7:
        os.kill(os.getpid(), signal.SIGKILL)
    return task


@pytest.mark.slow
def test_a_task_that_kills_its_workers_is_an_error_in_the_end(ray_engine, monkeypatch):
    monkeypatch.setattr(ray_module, "_RETRIES", 1)
    done = []
    with pytest.raises(UserError, match=r"a task: its worker died again and again.*partitions"):
        for number, _ in ray_engine.map(kill_seven, range(5, 10)):
            done.append(number)
    assert sorted(done) == [0, 1, 3, 4]


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
@pytest.mark.parametrize("reduced", [False, True], ids=["map", "reduce"])
def test_a_worker_that_cannot_be_made_is_not_told_as_one_that_died(ray_engine, reduced):
    told = r"^Ray cannot make a worker: ModuleNotFoundError: No module named 'own'; install on each"
    with pytest.raises(UserError, match=told):
        if reduced:
            ray_engine.reduce(Foreign(), range(2), np.add)
        else:
            list(ray_engine.map(Foreign(), range(2)))


@pytest.mark.parametrize(
    ("asked", "there", "expected"),
    [(None, {"CPU": 3.0}, 3), (2, {"CPU": 3.0}, 2), (5, {"CPU": 3.0}, 3)],
)
def test_there_are_no_more_workers_than_the_cluster_has_room_for(asked, there, expected):
    assert on(there, asked).workers == expected


def test_a_cluster_without_a_cpu_is_told():
    with pytest.raises(UserError, match=r"has 0 CPUs, and each worker needs one: .* --num-cpus"):
        _ = on({"GPU": 8.0}, 2).workers


def on(resources, asked):
    """An engine on a cluster with these resources."""
    engine = RayEngine.__new__(RayEngine)
    engine._asked, engine.gpus_per_worker = asked, 0
    engine._ray = SimpleNamespace(cluster_resources=lambda: resources)
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
    with pytest.raises(UserError, match="a stream"):
        list(ray_engine.map(draw, parts_of(iter([np.zeros((3, 2))]))))


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


@pytest.mark.slow
def test_more_gpus_than_there_are_is_refused(ray_engine):
    with pytest.raises(UserError, match="the cluster has 0 GPUs"):
        list(RayEngine(gpus_per_worker=1).map(draw, range(3)))


@pytest.mark.slow
def test_what_ray_itself_cannot_do_is_told_with_a_remedy(ray_engine):
    lost = ray_engine._ray.exceptions.RayActorError
    with pytest.raises(UserError, match=r"Ray gave a task up: .* smaller parts"):
        with ray_engine._errors():
            raise lost
