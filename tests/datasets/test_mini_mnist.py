import subprocess
import sys

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
        "Dataset('mini_mnist', X_train=(1500, 784), X_test=(500, 784), n_classes=10, "
        "ood={'kmnist': 200, 'omniglot': 200, 'omniglot_inverted': 200})"
    )
    for X in (data.X_train, data.X_test, *data.ood.values()):
        assert X.dtype == np.float32 and X.min() == 0 and X.max() == 1
    assert data.image_shape == (28, 28) and data.target_names == tuple("0123456789")
    assert len(data.provenance) == 3
    assert all(source.licence and source.urls and source.notes for source in data.provenance)


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
