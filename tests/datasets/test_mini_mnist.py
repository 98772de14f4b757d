import subprocess
import sys
import time

import numpy as np
import pytest

from dipedl.datasets import load_mini_mnist, mini_mnist


@pytest.fixture(scope="module")
def data():
    return load_mini_mnist()


@pytest.fixture(scope="module")
def arrays():
    return mini_mnist.read_arrays()


def test_shapes_types_and_range(data):
    assert repr(data) == (
        "Dataset('mini_mnist', X_train=(4000, 784), X_test=(1000, 784), n_classes=10, "
        "ood={'kmnist': 500, 'omniglot': 500, 'omniglot_inverted': 500})"
    )
    for X in (data.X_train, data.X_test, *data.ood.values()):
        assert X.dtype == np.float32 and X.min() == 0 and X.max() == 1
    assert data.image_shape == (28, 28) and data.target_names == tuple("0123456789")


def test_classes_are_balanced(data):
    assert np.bincount(data.y_train).tolist() == [400] * 10
    assert np.bincount(data.y_test).tolist() == [100] * 10


def test_no_image_twice(data):
    sets = [data.X_train, data.X_test, *data.ood.values()]
    rows = {row.tobytes() for X in sets for row in X}
    assert len(rows) == sum(len(X) for X in sets)


def test_statistics(data):
    # the full sets have mean 0.1307 (MNIST) and 0.9157 (Omniglot as published)
    assert data.X_train.mean(dtype=np.float64) == pytest.approx(0.1307, abs=0.003)
    assert data.X_test.mean(dtype=np.float64) == pytest.approx(0.1325, abs=0.006)
    assert data.ood["omniglot"].mean(dtype=np.float64) == pytest.approx(0.9157, abs=0.005)
    np.testing.assert_array_equal(data.ood["omniglot_inverted"], 1 - data.ood["omniglot"])


def test_rows_are_sorted_and_unique(arrays):
    for name, n in (("train", 60_000), ("test", 10_000), ("kmnist", 10_000), ("omniglot", 13_180)):
        rows = arrays[f"rows_{name}"].astype(int)
        assert (np.diff(rows) > 0).all() and 0 <= rows[0] and rows[-1] < n


def test_size_and_licences(data):
    folder = mini_mnist.FILE.parent
    assert sum(path.stat().st_size for path in folder.iterdir()) < 1.9e6
    text = (folder / "LICENSES.md").read_text(encoding="utf-8")
    for words in (
        "Attribution-ShareAlike 3.0",
        "Attribution-ShareAlike 4.0",
        "10.20676/00000341",
        "Copyright (c) 2015 Brenden Lake",
        "WITHOUT WARRANTY OF ANY KIND",
        "**not** under this package's",
    ):
        assert words in text
    assert len(data.provenance) == 3
    assert all(source.licence and source.urls and source.notes for source in data.provenance)


def test_loads_fast():
    seconds = []
    for _ in range(5):
        start = time.perf_counter()
        load_mini_mnist()
        seconds.append(time.perf_counter() - start)
    assert min(seconds) < 0.25  # about 0.025 on an idle machine


def test_imports_nothing_heavier_than_numpy():
    code = (
        "import sys; from dipedl.datasets import load_mini_mnist; load_mini_mnist();"
        "print(*{'sklearn', 'scipy', 'PIL', 'pooch', 'torch', 'requests'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("damage", ["other", "cut", "text", "empty"])
def test_damaged_file(tmp_path, monkeypatch, arrays, damage):
    path = tmp_path / "mini.npz"
    if damage == "other":
        changed = arrays["X_train"].copy()
        changed[0, 0, 0] += 1
        np.savez(path, **{**arrays, "X_train": changed})
    else:
        content = mini_mnist.FILE.read_bytes()
        path.write_bytes({"cut": content[:-1000], "text": b"not an archive", "empty": b""}[damage])
    monkeypatch.setattr(mini_mnist, "FILE", path)
    with pytest.raises(ValueError, match=r"mini\.npz' must have arrays .* install dipedl again"):
        load_mini_mnist()


def test_fingerprint_ignores_order_and_packing_only(arrays):
    fingerprint = mini_mnist.fingerprint
    reordered = {name: np.asfortranarray(arrays[name]) for name in reversed(list(arrays))}
    assert fingerprint(reordered) == fingerprint(arrays) == mini_mnist.SHA256
    assert fingerprint({"a": np.zeros(4)}) != fingerprint({"a": np.zeros((2, 2))})
    assert fingerprint({"a": np.zeros(4)}) != fingerprint({"b": np.zeros(4)})
