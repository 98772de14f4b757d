"""Runs: each part is trained once, a kill loses nothing, and failures say what to do."""

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from synthetic_store import arrays_of
from tiny_suite import TINY

from dipedl_bench import Store, load_rows, run
from dipedl_bench.datasets.images import files_of
from dipedl_bench.datasets.splits import check_files
from dipedl_bench.running.runner import StoppedError

METHODS = ["dip-edl", "dip-edl-features", "energy", "edl"]
PARTS = {"net", "gaussian", "classes", *METHODS}


@pytest.fixture(scope="module")
def finished(suite, tmp_path_factory):
    """A folder with all rows of the tiny suite, the result and the lines of progress."""
    out, lines = tmp_path_factory.mktemp("out"), []
    result = run(suite, out=out, progress=lines.append)
    return out, result, lines


def receipts(out):
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in sorted(out.glob("tiny/smoke/arrays/*/*/*/receipt.json"))
        if not path.parent.name.startswith(".")
    }


def test_every_part_is_trained_once_a_seed_and_every_method_has_its_rows(finished):
    out, result, lines = finished
    rows = load_rows("tiny", out=out)
    assert [(r["seed"], r["method"]) for r in rows] == [(s, m) for s in (1, 2) for m in METHODS]
    assert len(result.rows) == 8 and not result.failed and not result.left
    assert {name.split("/")[3] for name in receipts(out)} == PARTS
    assert len(receipts(out)) == 2 * len(PARTS)
    begun = [line for line in lines if line.count(":") == 0 and line.startswith("seed")]
    assert len(begun) == 2 * len(PARTS)


def test_a_row_has_its_receipt(finished):
    row = load_rows("tiny", out=finished[0])[0]
    assert row["n"] == {"train": 200, "validation": 60, "test": 80, "ood/kmnist": 50}
    parts = row["parts"]
    assert set(parts) == {"classifier", "density"}
    for step in ("train", "score"):
        whole = sum(p["seconds"][step] for p in (*parts.values(), row["own"]))
        assert row["seconds"][step] == pytest.approx(whole, abs=2e-3)
    assert parts["classifier"]["seconds"]["train"] > 0
    assert parts["classifier"]["seconds"]["score"] > 0
    assert row["n_parameters"] == 784 * 16 + 16 + 16 * 10 + 10
    assert row["peak_memory_mb"] > 50
    assert row["config"]["arguments"]["gamma"] == 1.0  # stated, though left at its default
    assert row["config"]["data"]["limit"]["train"] == 200
    assert {"dipedl", "numpy", "torch"} <= set(row["versions"])
    assert row["device"] and row["time"]


def test_arrays_are_those_of_the_parts(finished):
    store = Store(finished[0], "tiny", "smoke")
    parts = ("method", "classifier", "density")
    own, net, density = (arrays_of(store, "dip-edl", 1, part) for part in parts)
    assert set(own) == {"validation", "test", "ood/kmnist"}
    assert set(net) == set(density) == {*own, "train"}
    # Definition 3.1 with the z-score of the training rows and a prior of 1/2, by hand
    train = density["train"]["log_density"]
    z = (density["ood/kmnist"]["log_density"] - train.mean()) / train.std()
    evidence = 200 * np.exp(z)[:, None] * net["ood/kmnist"]["probabilities"]
    np.testing.assert_allclose(own["ood/kmnist"]["concentration"], 0.5 + evidence, rtol=1e-9)
    np.testing.assert_allclose(
        own["test"]["uncertainty"], -density["test"]["log_density"], rtol=1e-12
    )


def test_statistics_may_come_from_the_validation_rows(finished):
    store = Store(finished[0], "tiny", "smoke")
    own, density = (arrays_of(store, "dip-edl-features", 1, part) for part in ("method", "density"))
    held = density["validation"]["log_density"]
    z = (density["test"]["log_density"] - held.mean()) / held.std()
    np.testing.assert_allclose(own["test"]["log_evidence"], np.log(200 * 2.0) + z, rtol=1e-9)


def test_what_is_there_is_not_run_again(suite, finished):
    out, _, _ = finished
    before = receipts(out), (out / "tiny/smoke/rows.jsonl").read_bytes()
    again = run(suite, out=out)
    assert (again.present, again.rows) == (8, [])
    assert before == (receipts(out), (out / "tiny/smoke/rows.jsonl").read_bytes())


def test_a_torn_row_is_written_again_from_its_arrays(suite, finished):
    out, _, _ = finished
    rows, before = load_rows("tiny", out=out), receipts(out)
    file = out / "tiny/smoke/rows.jsonl"
    file.write_bytes(file.read_bytes()[:-50])
    assert len(run(suite, out=out).rows) == 1
    assert receipts(out) == before
    assert load_rows("tiny", out=out)[-1]["metrics"] == rows[-1]["metrics"]


def arrays_in(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*.npz"))}


def test_damage_is_told_by_every_run_until_it_is_mended(suite, finished, tmp_path):
    out = shutil.copytree(finished[0], tmp_path / "out")
    folder = next(out.glob("tiny/smoke/arrays/energy/*/1"))
    (folder / "test.npz").write_bytes(b"PK")
    for problem in ("test.npz is damaged", "receipt.json is gone"):
        lines = []
        late = run(suite, out=out, budget=1e-9, progress=lines.append)
        assert (late.present, late.left, late.rows) == (7, [("energy", 1)], [])
        assert lines[0].startswith(f"seed 1  method energy: {problem}")


@pytest.mark.slow
def test_what_is_damaged_is_named_and_only_that_is_made_again(suite, finished):
    """Rows stay as they are, and a training with the same seed ends with the same bits."""
    out, _, _ = finished
    arrays = out / "tiny/smoke/arrays"
    net, density, method = (
        next(arrays.glob(f"{name}/*/1")) for name in ("net", "gaussian", "energy")
    )
    before, rows = receipts(out), load_rows("tiny", out=out)
    bits = arrays_in(arrays)
    flipped = bytearray((net / "test.npz").read_bytes())
    flipped[len(flipped) // 2] ^= 1
    (net / "test.npz").write_bytes(flipped)
    (density / "receipt.json").write_bytes((density / "receipt.json").read_bytes()[:40])
    (method / "ood__kmnist.npz").unlink()
    lines = []
    again = run(suite, out=out, progress=lines.append)
    named = {line.split("; ")[0] for line in lines if "made again" in line}
    damaged = "is damaged: its checksum is another than when it was written"
    assert named == {
        f"seed 1  classifier net: test.npz {damaged}",
        f"seed 1  density gaussian: receipt.json {damaged}",
        "seed 1  method energy: ood__kmnist.npz is gone",
    }
    assert (again.rows, again.failed, again.left) == ([], {}, [])
    changed = {name for name, data in receipts(out).items() if data != before[name]}
    assert {name.split("/")[3] for name in changed} == {"net", "gaussian", "energy"}
    assert len(changed) == 3
    assert arrays_in(arrays) == bits and load_rows("tiny", out=out) == rows
    lines.clear()
    assert run(suite, out=out, progress=lines.append).present == 8 and len(lines) == 1


def test_arrays_that_were_deleted_are_not_made_again(suite, finished):
    out, _, _ = finished
    folder = next(out.glob("tiny/smoke/arrays/edl/*/1"))
    aside = folder.rename(out / "aside")
    assert run(suite, out=out).present == 8 and not folder.exists()
    aside.rename(folder)


def variant(tmp_path, *changes):
    text = TINY
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = tmp_path / "variant.toml"
    path.write_text(text)
    return path


def test_the_ood_sets_of_a_bundled_data_set_need_no_files(tmp_path, monkeypatch):
    monkeypatch.setenv("DIPEDL_DATA", str(tmp_path))
    check_files({"dataset": "mini-mnist", "ood": ["kmnist"]})
    for file in files_of("mnist", ["train", "test"]):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).touch()
    check_files({"dataset": "mnist", "ood": []})
    with pytest.raises(FileNotFoundError, match=r"--data, must name .* 'kmnist/t10k"):
        check_files({"dataset": "mnist", "ood": ["kmnist"]})


def test_missing_data_stops_the_run_and_says_what_is_missing(tmp_path, monkeypatch):
    path = variant(tmp_path, ('"mini-mnist"', '"mnist"'))
    # before the process, which takes seconds to begin
    monkeypatch.setattr("dipedl_bench.running.runner.run_in_process", None)
    monkeypatch.setenv("DIPEDL_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(StoppedError, match=r"DIPEDL_DATA, .*is not a directory"):
        run(path, out=tmp_path / "out")


def test_a_part_that_fails_does_not_stop_the_others(tmp_path):
    path = variant(tmp_path, ("n_jobs = 1 }\n\n[densities", 'device = "mps" }\n\n[densities'))
    lines = []
    result = run(path, out=tmp_path / "out", seeds=[1], progress=lines.append)
    assert [row["method"] for row in result.rows] == ["edl"]
    assert set(result.failed) == {("dip-edl", 1), ("dip-edl-features", 1), ("energy", 1)}
    assert "classifier net: " in result.failed["energy", 1]
    assert "mps" in result.failed["energy", 1]
    assert sum("FAILED" in line for line in lines) == 1  # tried once, not once a method


def test_a_profile_for_a_gpu_runs_on_another_device_with_the_same_configuration(tmp_path, finished):
    path = variant(
        tmp_path, ("resamples = 0\n", 'resamples = 0\ntraining = { device = "cuda:99" }\n')
    )
    result = run(path, out=tmp_path / "out", seeds=[1], methods=["edl"], device="cpu")
    (row,) = result.rows
    same = {(r["method"], r["seed"]): r for r in finished[1].rows}["edl", 1]
    assert row["config_hash"] == same["config_hash"] and row["metrics"] == same["metrics"]
    with pytest.raises(ValueError, match="device must be"):
        run(path, out=tmp_path / "out", seeds=[1], methods=["edl"], device="gpu")


LONG = (
    "training = { epochs = 2, batch_size = 32, n_jobs = 1 }",
    "training = { epochs = 150, batch_size = 32, n_jobs = 1 }",
)


def test_a_process_that_is_killed_is_reported_with_a_remedy(tmp_path):
    """As the kernel does when memory runs out."""
    others = set(multiprocessing.active_children())  # of tests that ran in this process before

    def kill_the_worker():
        while not (new := set(multiprocessing.active_children()) - others):
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(new.pop().pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_worker)
    killer.start()
    result = run(variant(tmp_path, LONG), out=tmp_path / "out", methods=["edl"], seeds=[1])
    killer.join()
    message = result.failed["edl", 1]
    assert "ran out of memory" in message and "variant.toml: methods.edl" in message


def command(path, out, *more):
    return [sys.executable, "-m", "dipedl_bench", "run", str(path), "--out", str(out), *more]


def wait_for(condition, process, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        assert process.poll() is None or condition(), "it ended by itself"
        time.sleep(0.005)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


@pytest.mark.slow
def test_a_run_killed_again_and_again_loses_nothing_and_runs_nothing_twice(tmp_path, suite):
    out, kept, methods = tmp_path / "out", {}, ["energy", "edl"]
    for count in (1, 3):
        process = subprocess.Popen(
            command(suite, out, "--methods", "energy,edl"), stderr=subprocess.DEVNULL
        )
        wait_for(lambda n=count: len(receipts(out)) >= n, process)
        kill(process)
        time.sleep(0.1)
        now = receipts(out)
        assert kept.items() <= now.items()  # what was finished is as it was
        kept = now
    assert not run(suite, out=out, methods=methods).failed
    assert kept.items() <= receipts(out).items()
    assert len(receipts(out)) == 6
    rows = load_rows("tiny", out=out)
    assert [(r["seed"], r["method"]) for r in rows] == [(s, m) for s in (1, 2) for m in methods]


@pytest.mark.slow
def test_a_killed_training_goes_on_and_ends_with_the_same_bits(tmp_path):
    path, out = variant(tmp_path, LONG), tmp_path / "out"
    options = ("--methods", "edl", "--seeds", "1")
    state = lambda: list(out.glob("tiny/smoke/arrays/edl/*/.1.training/checkpoint"))  # noqa: E731
    process = subprocess.Popen(command(path, out, *options), stderr=subprocess.DEVNULL)
    wait_for(state, process)
    kill(process)
    time.sleep(0.2)
    (file,) = state()  # so it was not finished
    stamp = file.stat().st_mtime_ns
    time.sleep(0.1)
    assert file.stat().st_mtime_ns == stamp  # and its worker has died with it
    assert not run(path, out=out, methods=["edl"], seeds=[1]).failed
    assert not state()
    row = load_rows("tiny", out=out)[0]
    assert row["own"]["resumed"]
    run(path, out=tmp_path / "at once", methods=["edl"], seeds=[1])
    stores = (Store(folder, "tiny", "smoke") for folder in (out, tmp_path / "at once"))
    one, other = (arrays_of(store, "edl", 1) for store in stores)
    for split, named in one.items():
        for name, array in named.items():
            np.testing.assert_array_equal(array, other[split][name])


@pytest.mark.slow
def test_two_runs_on_one_folder_share_the_work(tmp_path, suite):
    both = [
        subprocess.Popen(command(suite, tmp_path), stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    lines = "\n".join(process.communicate(timeout=600)[1] for process in both).splitlines()
    assert [process.returncode for process in both] == [0, 0]
    begun = [line.split("] ")[1].split(",")[0] for line in lines if line.count(":") == 1]
    trained = [label for label in begun if label.startswith("seed")]
    assert len(trained) == len(set(trained)) == 2 * len(PARTS)
    rows = load_rows("tiny", out=tmp_path)
    assert len({(r["seed"], r["method"]) for r in rows}) == len(rows) == 8
