"""A data set of one's own: arrays and pictures come in as they are; errors say what is wrong."""

import numpy as np
import pytest

pytest.importorskip("pydantic")
Image = pytest.importorskip("PIL.Image")

from dipedl_bench.datasets.own import load_own, own_digest, own_ood_sets  # noqa: E402
from dipedl_bench.datasets.splits import halve_test_rows, make_splits  # noqa: E402

CONFIG = {"ood": ["noise"], "validation_fraction": 0.2}
LIMIT = dict.fromkeys(("train", "validation", "test", "ood"))


def arrays(rng, shape=(3, 4, 5)):
    made = {name: rng.integers(256, size=(n, *shape), dtype=np.uint8) for name, n in ROWS.items()}
    labels = np.array(["b", "a", "c"])
    return {**made, "y_train": labels[np.arange(12) % 3], "y_test": labels[np.arange(6) % 3]}


ROWS = {"X_train": 12, "X_test": 6, "ood_noise": 4}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_arrays_and_pictures_are_the_same_data_set(here, rng):
    made = arrays(rng)
    np.savez("own.npz", **made)
    for part in ("train", "test"):
        for i, (image, label) in enumerate(zip(made[f"X_{part}"], made[f"y_{part}"], strict=True)):
            save(image, f"own/{part}/{label}/{i:03d}.png")
    for i, image in enumerate(made["ood_noise"]):
        save(image, f"own/ood/noise/more/{i:03d}.png")
    file, folder = load_own("own.npz"), load_own("own/")
    assert file.target_names == folder.target_names == ("a", "b", "c")
    assert file.image_shape == folder.image_shape == (3, 4, 5)
    assert own_ood_sets("own.npz") == own_ood_sets("own/") == ("noise",)
    np.testing.assert_array_equal(file.ood["noise"], folder.ood["noise"])
    np.testing.assert_allclose(file.X_test * 255, made["X_test"].reshape(6, -1), rtol=1e-6)
    np.testing.assert_array_equal(file.y_test, [1, 0, 2, 1, 0, 2])
    for part in ("train", "test"):  # a folder is read class by class
        X, y = getattr(file, f"X_{part}"), getattr(file, f"y_{part}")
        order = np.argsort(y, kind="stable")
        np.testing.assert_array_equal(getattr(folder, f"X_{part}"), X[order])
        np.testing.assert_array_equal(getattr(folder, f"y_{part}"), y[order])
    # another pixel, or a picture more, is another data set
    before = own_digest("own.npz"), own_digest("own/")
    np.savez("own.npz", **{**made, "X_test": made["X_test"] // 2})
    save(made["X_test"][0], "own/test/a/new.png")
    assert not set(before) & {own_digest("own.npz"), own_digest("own/")}


def save(image, file):
    from pathlib import Path

    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.moveaxis(image, 0, 2)).save(file)


def test_half_of_the_test_rows_calibrate(here, rng):
    np.savez("own.npz", **arrays(rng))
    data, config = load_own("own.npz"), {**CONFIG, "dataset": "own.npz", "limit": LIMIT}
    splits = [make_splits({**config, "calibration": "test"}, seed) for seed in (1, 2)]
    for made in splits:
        np.testing.assert_array_equal(made.X["test"], splits[0].X["test"])
        both = np.concatenate([made.X["validation"], made.X["test"]])
        np.testing.assert_array_equal(np.unique(both, axis=0), np.unique(data.X_test, axis=0))
        held, judged = halve_test_rows(len(data.X_test))
        np.testing.assert_array_equal(made.X["test"], data.X_test[np.sort(judged)])
        np.testing.assert_array_equal(made.y["validation"], data.y_test[held])
        assert len(made.X["validation"]) == 3 and len(made.X["train"]) == len(data.X_train)
    plain = make_splits(config, 1)
    assert len(plain.X["validation"]) == 2 and len(plain.X["test"]) == 6


def test_corrupted_test_rows_are_shifted_sets(here, rng):
    np.savez("own.npz", **arrays(rng, (3, 32, 32)))
    config = {**CONFIG, "dataset": "own.npz", "limit": LIMIT, "shifted": ["severity_1"]}
    config["shifted"] += ["severity_5"]
    made = make_splits(config, 0, here / "kept")
    test, y = made.X["test"], made.y["test"]
    gaps = []
    for name in config["shifted"]:
        moved = made.X[f"shifted/{name}"].reshape(15, *test.shape)
        np.testing.assert_array_equal(made.y[f"shifted/{name}"], np.tile(y, 15))
        gaps.append(np.abs(moved - test).mean())
    assert 0 < gaps[0] < gaps[1]
    again = make_splits(config, 1, here / "kept")
    np.testing.assert_array_equal(again.X["shifted/severity_5"], made.X["shifted/severity_5"])


BAD = {
    "no labels": ({"y_train": None}, ValueError, "y_train"),
    "an unknown array": ({"X_val": np.zeros((2, 3, 4, 5))}, ValueError, "X_val"),
    "another shape": ({"X_test": np.zeros((6, 3, 4, 4))}, ValueError, "X_test"),
    "channels last": ({"X_train": np.zeros((12, 8, 8, 3))}, ValueError, "transpose"),
    "another shape of an OOD set": ({"ood_noise": np.zeros((4, 60))}, ValueError, "ood_noise"),
    "not finite": ({"X_test": np.full((6, 3, 4, 5), np.nan)}, ValueError, "X_test"),
    "no pixels": ({"X_train": np.full((12, 3, 4, 5), 7.0)}, ValueError, "X_train"),
    "text": ({"X_train": np.full((12, 3, 4, 5), "a")}, ValueError, "X_train"),
    "no rows": ({"ood_noise": np.zeros((0, 3, 4, 5))}, ValueError, "ood_noise"),
    "one class": ({"y_train": np.zeros(12, int)}, ValueError, "y_train"),
    "another class": ({"y_test": np.array(["a"] * 5 + ["z"])}, ValueError, "y_test"),
    "labels of other rows": ({"y_test": np.array(["a"] * 5)}, ValueError, "y_test"),
    "labels that are no labels": ({"y_test": np.full(6, 0.5)}, ValueError, "y_test"),
    "an OOD set that names a folder": ({"ood_a/b": np.zeros((4, 3, 4, 5))}, ValueError, "'a/b'"),
    "an OOD set of a known name": ({"ood_test": np.zeros((4, 3, 4, 5))}, ValueError, "'test'"),
}


@pytest.mark.parametrize("what", BAD)
def test_bad_arrays(here, rng, what):
    changes, error, argument = BAD[what]
    made = {key: of for key, of in {**arrays(rng), **changes}.items() if of is not None}
    np.savez("own.npz", **made)
    with pytest.raises(error, match=argument):
        load_own("own.npz")


def test_bad_files_and_folders(here, rng):
    image = arrays(rng)["X_test"][0]
    with pytest.raises(FileNotFoundError, match=r"none\.npz"):
        load_own("none.npz")
    (here / "text.npz").write_text("no arrays")
    with pytest.raises(ValueError, match=r"text\.npz"):
        own_ood_sets("text.npz")
    save(image, "loose/train/a/0.png")
    with pytest.raises(ValueError, match="test/CLASS"):
        load_own("loose/")
    save(image, "loose/test/1.png")
    with pytest.raises(ValueError, match=r"1\.png"):
        load_own("loose/")
    save(image[:, :3], "sizes/train/a/0.png")
    save(image, "sizes/train/b/0.png")
    with pytest.raises(ValueError, match="one size"):
        load_own("sizes/")
    Image.fromarray(np.full((4, 4), 9000, np.uint16)).save(here / "sizes/train/a/0.png")
    with pytest.raises(ValueError, match="write them with 8 bits"):
        load_own("sizes/")
    (here / "sizes/train/a/0.png").write_text("no picture")
    with pytest.raises(ValueError, match=r"0\.png"):
        load_own("sizes/")
