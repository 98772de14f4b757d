"""The store: nothing half-written is ever seen, nothing is there twice."""

import errno
import json
import multiprocessing
import os
import shutil
import stat
import warnings
from pathlib import Path

import numpy as np
import pytest
from synthetic_store import arrays_of, write_synthetic_store

from dipedl_bench import load_rows, read_rows
from dipedl_bench.results.rows import as_line, merge
from dipedl_bench.results.store import Store


@pytest.fixture
def store(tmp_path):
    return write_synthetic_store(
        tmp_path, methods=["dip-edl", "edl"], seeds=[10, 20], n_resamples=0
    )


def row_of(store, **changes):
    return {**store.rows()[0], **changes}


def test_rows_and_arrays_come_back(store, tmp_path):
    rows = load_rows("mnist", out=tmp_path)
    assert [(r["method"], r["seed"]) for r in rows] == [
        ("dip-edl", 10), ("edl", 10), ("dip-edl", 20), ("edl", 20),
    ]  # fmt: skip
    arrays = arrays_of(store, "dip-edl", 20)
    assert set(arrays) == {
        "validation", "test", "ood/kmnist", "ood/omniglot", "ood/omniglot_inverted",
    }  # fmt: skip
    assert arrays["test"]["probabilities"].dtype == np.float64
    density = arrays_of(store, "dip-edl", 20, "density")
    assert density["train"]["log_density"].shape == (60,)


def test_sets_keep_their_names(store):
    splits = {"test": {"y": np.arange(3)}, "ood/street__view": {"y": np.arange(2)}}
    store.save_arrays("net", "0", 1, splits, {})
    assert store.load("net", "0", 1).keys() == splits.keys()


def test_rows_of_every_suite_are_one_frame():
    root = Path(__file__).parents[1] / "results" / "bench"
    rows = read_rows(root)
    suites = {"cifar10", "cifar10-resnet", "defaults", "mnist", "second-order", "spectra"}
    assert set(rows.suite) == suites
    assert (rows.dataset != "").all() and rows["n.test"].isna().equals(rows.refused != "")
    mnist = read_rows(root / "mnist")
    expected = [row["metrics"]["accuracy"] for row in load_rows("mnist", out=root)]
    assert list(mnist["metrics.accuracy"]) == expected
    assert set(mnist.dataset) == {"mnist"} and "cnn" in set(mnist.classifier)
    first = load_rows("mnist", out=root)[0]
    ends = [mnist[f"{end}.auroc/kmnist"][0] for end in ("low", "high")]
    assert ends == first["intervals"]["auroc/kmnist"] and mnist.row[0] == first
    with pytest.raises(FileNotFoundError, match="no rows in"):
        read_rows(root / "mnits")


def test_what_is_not_there_is_said_with_what_is(store, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"dipedl-bench run FILE.toml --profile cpu --out "):
        load_rows("cifar", "cpu", out=tmp_path)
    with pytest.raises(LookupError, match="'edl' has no part 'density'"):
        arrays_of(store, "edl", 20, "density")


def test_a_row_is_never_there_twice(store):
    before = store.rows_file.read_bytes()
    assert not store.append(row_of(store, time="later"))
    assert store.rows_file.read_bytes() == before
    assert store.append(row_of(store, config_hash="another"))
    assert store.missing([row_of(store, config_hash="another")]) == {}


@pytest.mark.parametrize("cut", [1, 30, 500])
def test_a_torn_last_line_is_named_left_out_and_repaired(store, cut):
    rows = store.rows()
    whole = store.rows_file.read_bytes()
    store.rows_file.write_bytes(whole[:-cut])
    with pytest.warns(UserWarning, match="line 4, is damaged") as told:
        assert store.rows() == rows[:-1] == load_rows("mnist", out=store.root)
    assert {warning.filename for warning in told} == {__file__}
    assert store.append(rows[-1])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert store.rows() == rows
    assert store.rows_file.read_bytes() == whole


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"seed": "ten"}, "seed must be of type int, got 'ten'"),
        ({"n": None}, "n must be of type dict"),
        ({"intervals": {"accuracy": [1]}}, "not enough values to unpack"),
        ({"method": "MISSING"}, "'method'"),
    ],
)
def test_a_row_that_lacks_a_key_of_readers_is_named_and_the_others_are_read(store, changed, said):
    rows = store.rows()
    bad = {key: v for key, v in (rows[1] | changed).items() if v != "MISSING"}
    store.rows_file.write_bytes(b"".join(map(as_line, [rows[0], bad, *rows[2:]])))
    with pytest.warns(UserWarning, match=f"line 2, is damaged .*{said}"):
        assert store.rows() == [rows[0], *rows[2:]]
    assert store.append(rows[1]) and len(store.rows()) == 4


def test_a_row_of_a_newer_version_is_refused(store):
    store.append(row_of(store, config={"format": 99}, config_hash="newer"))
    with pytest.raises(ValueError, match=r"line 5: a row of format 99.*upgrade"):
        store.rows()


def test_rows_in_the_folder_of_another_suite_are_refused(store, tmp_path):
    other = tmp_path / "cifar10" / "cpu" / "rows.jsonl"
    other.parent.mkdir(parents=True)
    other.write_bytes(store.rows_file.read_bytes())
    with pytest.raises(ValueError, match=r"a row of suite .mnist., profile .smoke.; .*bench merge"):
        load_rows("cifar10", out=tmp_path)


def test_numbers_that_json_lacks_survive(store):
    row = row_of(store, config_hash="x")
    row["metrics"] = {"nll": float("inf")}
    row["intervals"] = {"nll": [1.0, float("inf")]}
    store.append(row)
    json.loads(store.rows_file.read_text().splitlines()[-1], parse_constant=pytest.fail)
    assert store.rows()[-1]["metrics"] == {"nll": float("inf")}
    assert store.rows()[-1]["intervals"] == {"nll": [1.0, float("inf")]}


def test_arrays_that_are_half_written_are_not_there(tmp_path, monkeypatch):
    store = Store(tmp_path, "s", "p")
    arrays = {"test": {"a": np.zeros(3)}, "ood/x": {"a": np.ones(2)}}
    calls = []

    def fail_on_second(descriptor):
        calls.append(stat.S_ISREG(os.fstat(descriptor).st_mode))
        if sum(calls) == 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", fail_on_second)
    with pytest.raises(OSError, match=r"no space left for results in .*--out") as caught:
        store.save_arrays("m", "hash", 1, arrays, {"elapsed": 1.0})
    assert caught.value.errno == errno.ENOSPC
    assert not store.has_arrays("m", "hash", 1)
    store.save_arrays("m", "hash", 1, arrays, {"elapsed": 1.0})
    assert store.load("m", "hash", 1)["ood/x"]["a"].tolist() == [1, 1]
    assert store.receipt("m", "hash", 1)["elapsed"] == 1.0


@pytest.fixture
def kept(tmp_path):
    """A store with one part, and the folder of its arrays."""
    store = Store(tmp_path, "s", "p")
    weights = {"layer": np.arange(6.0)}
    store.save_arrays("m", "hash", 1, {"test": {"a": np.zeros(3)}}, {"elapsed": 1.0}, weights)
    return store, store.arrays_folder("m", "hash", 1)


FILES = ["test.npz", "receipt.json", "network.safetensors"]


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_bit_and_a_missing_file_are_named(kept, name):
    store, folder = kept
    data = bytearray((folder / name).read_bytes())
    data[-4] ^= 1
    (folder / name).write_bytes(data)
    assert store.damage("m", "hash", 1)[0].startswith(f"{name} is damaged: its checksum")
    (folder / name).unlink()
    assert store.damage("m", "hash", 1) == [f"{name} is gone"]


def test_what_waits_to_be_made_again_is_not_there(kept):
    store, folder = kept
    store.forget_arrays("m", "hash", 1)
    assert store.is_waiting("m", "hash", 1) and not store.has_arrays("m", "hash", 1)
    store.save_arrays("m", "hash", 1, {"test": {"a": np.ones(3)}}, {"elapsed": 2.0})
    assert not store.is_waiting("m", "hash", 1) and store.damage("m", "hash", 1) == []
    shutil.rmtree(folder)  # a deletion is no damage
    assert not store.is_waiting("m", "hash", 1) and store.damage("m", "hash", 1) == []


def test_readers_name_the_damaged_file_and_the_remedy(kept):
    store, folder = kept
    for name in FILES:
        (folder / name).write_bytes(b"{")
    reads = {"test.npz": store.load, "receipt.json": store.receipt, FILES[2]: store.network}
    for name, read in reads.items():
        with pytest.raises(ValueError, match=rf"{name}' is damaged \(.*run the suite again"):
            read("m", "hash", 1)


def test_no_space_for_a_row_leaves_a_torn_line_that_the_next_write_repairs(store, monkeypatch):
    before, write = store.rows(), os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: write(descriptor, data[:40]))
    with pytest.raises(OSError, match="no space left"):
        store.append(row_of(store, config_hash="x"))
    monkeypatch.undo()
    assert store.append({**before[0], "config_hash": "x"})
    assert store.rows()[:-1] == before


def _append_many(root, worker):
    store = Store(root, "mnist", "smoke")
    base = store.rows()[0]
    for i in range(15):
        store.append({**base, "config_hash": f"shared{i}"})
        store.append({**base, "config_hash": f"own{worker}-{i}"})


def test_many_writers_lose_nothing_and_write_nothing_twice(store, tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_append_many, args=(tmp_path, i)) for i in range(3)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    hashes = [row["config_hash"] for row in store.rows()[4:]]
    assert len(hashes) == len(set(hashes)) == 15 + 3 * 15


def test_rows_from_elsewhere_are_taken_once(store, tmp_path):
    here = tmp_path / "here"
    assert merge([store.rows_file], here) == (4, 0)
    assert merge([store.rows_file], here) == (0, 4)
    assert Store(here, "mnist", "smoke").rows() == store.rows()
    with pytest.raises(FileNotFoundError, match="no file"):
        merge([tmp_path / "nowhere.jsonl"], here)


@pytest.mark.parametrize("name", ["..", "a/b", "/tmp", "", 3, None])
def test_merged_rows_stay_below_the_folder_of_results(store, tmp_path, name):
    (tmp_path / "rows.jsonl").write_bytes(as_line(row_of(store, suite=name)))
    with pytest.raises(ValueError, match="suite of each row must be of letters"):
        merge([tmp_path / "rows.jsonl"], tmp_path / "results")
    assert not (tmp_path / "results").exists()
