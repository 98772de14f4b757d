"""Whatever holds the rows and however it is cut: the parts together are the rows, in order."""

import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.feather

from dipedl.apps.large import LocalEngine, parts_of
from dipedl.apps.large.parts import Size, with_checksums
from dipedl.apps.table.errors import UserError


@pytest.fixture
def frame(rng):
    numbers = pd.DataFrame(rng.normal(size=(1000, 3)), columns=list("abc"))
    return numbers.assign(kind=rng.choice(["x", "y"], 1000), n=np.arange(1000))


def whole(parts):
    return pd.concat([part.read() for part in parts], ignore_index=True)


def same_rows(found, frame):
    """Whole numbers of a file are of a type that takes gaps."""
    pd.testing.assert_frame_equal(found, frame, check_dtype=False)


def as_folder(frame, folder):
    """Two Parquet files of small row groups in hive folders, an Arrow and a Feather file."""
    for name, rows in {"day=1/a": frame[:300], "day=2/a": frame[300:600]}.items():
        (folder / name).parent.mkdir(parents=True)
        rows.to_parquet(folder / f"{name}.parquet", row_group_size=70, index=False)
    table = pa.Table.from_pandas(frame[600:800], preserve_index=False)
    with pa.ipc.new_file(folder / "e.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=33)
    pa.feather.write_feather(frame[800:].reset_index(drop=True), folder / "f.feather", chunksize=90)
    (folder / "_SUCCESS").touch()
    return folder


@pytest.mark.parametrize("partitions", [None, 41, 70, 100, "2KB"])
def test_a_folder_is_read_in_any_cuts(frame, tmp_path, partitions):
    parts = parts_of(as_folder(frame, tmp_path), partitions)
    assert sum(part.rows for part in parts) == 1000
    found = whole(parts)
    assert found["day"].fillna("").tolist() == ["1"] * 300 + ["2"] * 300 + [""] * 400
    same_rows(found[list(frame)], frame)
    assert all(len(part.read()) == part.rows for part in parts)
    if isinstance(partitions, int):
        assert max(part.rows for part in parts) <= partitions


def test_parts_have_names_and_first_rows_in_their_files(frame, tmp_path):
    parts = parts_of(as_folder(frame, tmp_path), 140)
    named = {part.name: (part.first, part.rows) for part in parts}
    assert named["day=1/a-00000"] == (0, 140) and named["day=2/a-00002"] == (280, 20)
    assert list(named) == sorted(named)


@pytest.mark.parametrize("size", [33, 5000])
def test_batches_are_the_rows_of_a_part(frame, tmp_path, size):
    for part in parts_of(as_folder(frame, tmp_path), 100):
        batches = list(part.batches(size))
        assert max(map(len, batches)) <= size
        pd.testing.assert_frame_equal(pd.concat(batches, ignore_index=True), part.read())


def test_frames_arrays_and_files_give_the_same_parts(frame, tmp_path):
    polars = pytest.importorskip("polars")
    for held in (frame, polars.from_pandas(frame)):
        pd.testing.assert_frame_equal(whole(parts_of(held, 64)), frame)
    X = frame[list("abc")].to_numpy()
    np.save(tmp_path / "x.npy", X)
    for held in (X, tmp_path / "x.npy"):
        parts = parts_of(held, 64)
        np.testing.assert_array_equal(np.concatenate([part.read() for part in parts]), X)
        assert {len(part.read()) for part in parts} == {62, 63}


def test_a_path_is_that_of_the_folder_where_it_was_given(frame, tmp_path, monkeypatch):
    for name, rows in (("one", frame[:5]), ("two", frame[:7])):
        (tmp_path / name).mkdir()
        rows.to_parquet(tmp_path / name / "rows.parquet")
        monkeypatch.chdir(tmp_path / name)
        (part,) = parts_of("rows.parquet")
        monkeypatch.chdir(tmp_path)
        assert len(part.read()) == len(rows)


def test_a_part_travels_and_a_url_is_a_path(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    for url in (f"file://{tmp_path}", [f"{tmp_path}/a.parquet"]):
        (part,) = pickle.loads(pickle.dumps(parts_of(url)))
        same_rows(part.read(), frame)


def test_a_file_system_of_fsspec(frame):
    memory = pytest.importorskip("fsspec").filesystem("memory")
    with memory.open("/of_parts/a.parquet", "wb") as file:
        frame.to_parquet(file)
    same_rows(whole(parts_of("memory://of_parts")), frame)
    with pytest.raises(UserError, match="nowhere"):
        parts_of("nowhere://of_parts")


def test_empty_files_are_parts_without_rows_and_bad_ones_say_why(frame, tmp_path):
    frame[:0].to_parquet(tmp_path / "a.parquet", index=False)
    frame.to_parquet(tmp_path / "b.parquet", index=False)
    (tmp_path / "c.parquet").write_bytes((tmp_path / "b.parquet").read_bytes()[:-100])
    (tmp_path / "d.arrow").write_bytes(b"no table at all")
    empty, full, cut_off, odd = parts_of(tmp_path)
    assert list(empty.read()) == list(frame) and len(empty.read()) == 0
    assert len(full.read()) == 1000
    assert "c.parquet cannot be read" in cut_off.trouble and "neither a Parquet" in odd.trouble
    with pytest.raises(UserError, match=r"c\.parquet cannot be read"):
        cut_off.read()


def test_damage_behind_a_good_footer_is_told(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet", index=False)
    data = bytearray((tmp_path / "a.parquet").read_bytes())
    data[4:2000] = bytes(1996)
    (tmp_path / "a.parquet").write_bytes(data)
    (part,) = parts_of(tmp_path)
    assert part.rows == 1000 and part.trouble == ""
    with pytest.raises(UserError, match=r"a\.parquet cannot be read"):
        part.read()


def test_what_is_no_data_set_is_refused(frame, tmp_path):
    with pytest.raises(UserError, match="there is no file or folder"):
        parts_of(tmp_path / "none")
    with pytest.raises(UserError, match=r"no file that ends in \.parquet"):
        parts_of(tmp_path)
    for odd, what in ((3, "got int"), (iter([(1, 2)]), "partial_fit")):
        with pytest.raises(TypeError, match=what):
            parts_of(odd)
    frame.to_parquet(tmp_path / "a.parquet")
    with pytest.raises(UserError, match="2 parts would be called 'a'"):
        parts_of([tmp_path / "a.parquet"] * 2)


def test_another_content_has_another_origin(frame, tmp_path):
    frame.to_parquet(tmp_path / "a.parquet")
    (first,) = with_checksums(parts_of(tmp_path), LocalEngine())
    frame[:-1].to_parquet(tmp_path / "a.parquet")
    (second,) = with_checksums(parts_of(tmp_path), LocalEngine())
    assert first.origin != second.origin
    assert parts_of(frame)[0].origin != parts_of(frame.assign(n=0))[0].origin


def test_sizes_are_rows_or_bytes():
    assert Size.of("100_000") == Size.of(100_000) == (100_000, 128 << 20)
    assert Size.of("64 MB") == (None, 64_000_000)
    for odd in ("0", "many", -3, "5 TB", ""):
        with pytest.raises(UserError, match="partitions must be rows"):
            Size.of(odd)
