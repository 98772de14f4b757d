"""Whatever engine and order: each task once, and the same sum to the last bit."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

from dipedl.apps.large import LocalEngine, Tree
from dipedl.apps.table.errors import UserError

ENGINES = {"one": LocalEngine(), "processes": LocalEngine(2)}


@pytest.fixture(params=[*ENGINES, pytest.param("ray", marks=pytest.mark.slow)])
def engine(request):
    """Each of the engines."""
    ray = request.param == "ray"
    return request.getfixturevalue("ray_engine") if ray else ENGINES[request.param]


class Held:
    """Counts its calls in one worker."""

    calls = 0

    def __call__(self, task):
        self.calls += 1
        return os.getpid(), self.calls, task


def inverse(task):
    return 1 / task


def test_each_task_once_by_a_function_that_is_held(engine):
    found = dict(engine.map(Held(), "abcdefgh"))
    assert [found[i][2] for i in range(8)] == list("abcdefgh")
    last = {}
    for pid, calls, _ in found.values():
        last[pid] = max(calls, last.get(pid, 0))
    assert sum(last.values()) == 8
    assert (os.getpid() in last) == (engine is ENGINES["one"])


@pytest.mark.parametrize("n", range(1, 20))
def test_the_tree_does_not_see_the_order(n):
    def merged(order):
        tree = Tree(lambda a, b: f"({a}{b})")
        for i in order:
            tree.add(i, f"{i:x}")
        return tree.result()

    order = list(range(n))
    want = merged(order)
    assert want.replace("(", "").replace(")", "") == "".join(f"{i:x}" for i in range(n))
    for seed in range(10):
        random.Random(seed).shuffle(order)
        assert merged(order) == want


def die(task):
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.slow
def test_a_killed_process_is_told():
    with pytest.raises(UserError, match="a worker process was killed"):
        list(LocalEngine(2).map(die, range(4)))


def test_errors_come_through_and_no_task_is_an_error(engine):
    with pytest.raises(ZeroDivisionError, match=r"^division by zero$"):
        list(engine.map(inverse, [1, 0]))
    assert list(engine.map(inverse, [])) == []
    with pytest.raises(ValueError, match="at least one task"):
        Tree(max).result()


def rest(task):
    """Say which worker this is, and stay long with all tasks but the first two."""
    if task > 1:
        time.sleep(60)
    return os.getpid()


DRIVER = """
from dipedl.apps.large import LocalEngine
from test_engines import rest
for _, pid in LocalEngine(2).map(rest, range(6)):
    print(pid, flush=True)
"""


def alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="a folder of Linux")
def test_a_driver_that_is_killed_leaves_no_worker_and_no_memory(tmp_path):
    arguments = [sys.executable, "-c", DRIVER]
    with subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parent,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    ) as driver:
        workers = {int(driver.stdout.readline()) for _ in range(2)}
        driver.kill()
    end = time.monotonic() + 30
    left = None
    while left != [] and time.monotonic() < end:
        time.sleep(0.2)
        shared = [file for file in Path("/dev/shm").glob(f"*{driver.pid}*")]
        left = [*filter(alive, workers), *shared, *tmp_path.iterdir()]
    assert left == []
