"""Data in bundles: nothing is lost, damage is noticed, and pieces may come one at a time."""

import hashlib
import io
import json
import pickle
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

SCRIPTS = Path(__file__).parent.parent / "scripts"
sys.path.insert(0, str(SCRIPTS))

import bundles  # noqa: E402
from bundles import main, pack, unpack  # noqa: E402
from pixel_codec import decoded, encoded  # noqa: E402


@settings(max_examples=15, deadline=None)
@given(n=st.integers(1, 4), seed=st.integers(0, 999), smooth=st.booleans())
def test_pixels_come_back(n, seed, smooth):
    rng = np.random.default_rng(seed)
    images = rng.integers(0, 256, (n, 3, 32, 32), dtype=np.uint8)
    if smooth:
        images = (images.cumsum(axis=3) // 32).astype(np.uint8)
    assert decoded(encoded(images.tobytes())) == images.tobytes()


def test_pixels_of_a_smooth_image_take_less_than_zlib_alone():
    import zlib

    rng = np.random.default_rng(0)
    steps = rng.normal(size=(50, 1, 32, 32)).cumsum(2).cumsum(3) + rng.normal(size=(50, 3, 32, 32))
    images = (128 + 4 * steps).clip(0, 255).astype(np.uint8).tobytes()
    assert len(encoded(images)) < 0.8 * len(zlib.compress(images))


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A folder of made-up files in the place of the published ones; a batch of CIFAR among them."""
    folder, rng = tmp_path / "data", np.random.default_rng(0)
    pixels = rng.integers(0, 8, 500 * 3072, dtype=np.uint8).tobytes()
    batch = pickle.dumps({"before": 1}) + b"T" + len(pixels).to_bytes(4, "little") + pixels + b"end"
    files = {
        "one/batch": batch,
        "one/noise": rng.integers(0, 256, 1_500_000, dtype=np.uint8).tobytes(),
        "two/few": b"a few bytes",
    }
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)

    def fetch(name, data_dir):
        path = data_dir / name
        if path.read_bytes() != files[name]:
            raise ValueError(f"{name} must have the checksum of the published file")
        return path

    monkeypatch.setattr(bundles, "fetch", fetch)
    monkeypatch.setattr(bundles, "_COUNTS", (500,))
    sets = {"one": ("one/batch", "one/noise"), "two": ("two/few",)}
    monkeypatch.setattr(bundles, "FILES_OF", sets)
    return folder, files


def test_bundles_keep_the_limit_and_may_come_one_at_a_time(published, tmp_path):
    folder, files = published
    made = pack(["one", "two"], tmp_path / "out", data_dir=folder, limit_mb=1, name="cpu")
    assert [path.name for path in made] == [f"cpu.{i + 1}.tar" for i in range(len(made))]
    assert len(made) == 3 and max(path.stat().st_size for path in made) <= 2**20
    # noise of three bits a pixel
    assert sum(path.stat().st_size for path in made) < 0.8 * sum(map(len, files.values()))
    target, lines = tmp_path / "elsewhere", []
    first = unpack(made[:1], target, lines.append)
    assert len(first) < 3 and (target / ".parts").is_dir()
    rest = unpack(made[1:], target, lines.append)
    assert sorted([*first, *rest]) == sorted(files) and len(lines) == 3
    for name, data in files.items():
        assert (target / name).read_bytes() == data
    assert not (target / ".parts").exists()


def test_what_is_damaged_or_no_bundle_is_refused(published, tmp_path):
    folder, _ = published
    (bundle,) = pack(["two"], tmp_path / "out", data_dir=folder)
    data = bundle.read_bytes()
    bundle.write_bytes(data.replace(b"sha256", b"sha257"))
    with pytest.raises(ValueError, match=r"must be a whole bundle .* copy it again"):
        unpack([bundle], tmp_path / "x")
    bundle.write_bytes(data[:600])
    with pytest.raises(ValueError, match="must be a whole bundle"):
        unpack([bundle], tmp_path / "x")
    at = data.index(b"blocks") + 20
    bundle.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(ValueError, match="another checksum"):
        unpack([bundle], tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_a_bundle_writes_no_file_that_is_not_of_a_data_set(published, tmp_path, monkeypatch):
    folder, _ = published
    (bundle,) = pack(["two"], tmp_path / "out", data_dir=folder)
    monkeypatch.setattr(bundles, "FILES_OF", {"two": ("two/other",)})
    with pytest.raises(ValueError, match="must be a whole bundle"):
        unpack([bundle], tmp_path / "x")


@pytest.mark.parametrize("part", ["/../../../fled", -1, 1, True, 0.0])
def test_a_piece_of_a_forged_number_writes_nothing(published, tmp_path, part):
    """The number is a part of the name under which a piece waits."""
    data, listed = b"anything", {"file": "two/few", "part": part, "parts": 1}
    listed["sha256"] = hashlib.sha256(data).hexdigest()
    bundle = tmp_path / "forged.tar"
    with tarfile.open(bundle, "w") as tar:
        text = json.dumps({"pieces": [listed]}).encode()
        for name, content in (("bundle.json", text), (f"two__few.{part}", data)):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    with pytest.raises(ValueError, match="must be a whole bundle"):
        unpack([bundle], tmp_path / "x" / "y")
    assert not (tmp_path / "x").exists() and not (tmp_path / "fled").exists()


@pytest.mark.parametrize("packed", [b"no json", b'{"blocks": [1]}\nx', bundles._packed(b"others")])
def test_a_bad_piece_leaves_the_file_that_is_there(published, tmp_path, packed):
    folder = tmp_path / "data"
    piece = bundles.Piece("two/few", 0, 1, "")
    part = folder / bundles._PARTS / piece.member
    part.parent.mkdir(parents=True, exist_ok=True)
    part.write_bytes(packed)
    with pytest.raises(ValueError, match=r"two/few|Expecting value"):
        bundles._join(piece, folder)
    assert (folder / "two/few").read_bytes() == b"a few bytes"


def test_bad_arguments(published, tmp_path):
    folder, _ = published
    with pytest.raises(ValueError, match="unknown data set 'tow', did you mean 'two'"):
        pack(["tow"], tmp_path, data_dir=folder)
    with pytest.raises(ValueError, match="limit_mb must be at least 1"):
        pack(["two"], tmp_path, data_dir=folder, limit_mb=0.5)


def test_the_script_packs_and_unpacks(published, tmp_path, monkeypatch, capsys):
    folder, _ = published
    monkeypatch.setattr(bundles, "_sets", lambda *_: ["one", "two"])
    out = ["--out", str(tmp_path / "out"), "--data", str(folder)]
    assert main(["pack", "mnist", *out, "--limit-mb", "1"]) == 0
    assert main(["unpack", str(tmp_path / "out"), "--data", str(tmp_path / "there")]) == 0
    assert "3 files in" in capsys.readouterr().out
    assert main(["unpack", str(folder), "--data", str(tmp_path / "there")]) == 2
    assert "make some with pack" in capsys.readouterr().err


def test_a_profile_without_files_is_said_to_have_none(tmp_path, capsys):
    assert main(["pack", "mnist", "--profile", "smoke", "--out", str(tmp_path)]) == 2
    assert "needs no files" in capsys.readouterr().err
