import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dipedl.datasets import mini_mnist
from dipedl_bench.datasets.images import read_part

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def arrays():
    return mini_mnist.read_arrays()


@pytest.fixture(scope="module")
def make_mini():
    spec = importlib.util.spec_from_file_location("make_mini", ROOT / "scripts/make_mini.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_stratified(make_mini, rng):
    labels = rng.integers(0, 3, 300)
    rows = make_mini.stratified(labels, 30, np.random.default_rng(1))
    assert np.bincount(labels[rows]).tolist() == [10] * 3
    assert (np.diff(rows.astype(int)) > 0).all()


@pytest.mark.data
def test_script_reproduces_the_arrays(full_dir, make_mini, arrays, tmp_path, capsys):
    again = make_mini.select()
    assert again.keys() == arrays.keys()
    for name in arrays:
        np.testing.assert_array_equal(again[name], arrays[name], strict=True)
    make_mini.main(full_dir, tmp_path / "mini.npz")
    assert mini_mnist.SHA256 in capsys.readouterr().out


@pytest.mark.data
def test_rows_point_to_the_very_images(full_dir, arrays):
    for part in ("train", "test"):
        images, labels, *_ = read_part("mnist", part)
        np.testing.assert_array_equal(images[arrays[f"rows_{part}"]], arrays[f"X_{part}"])
        np.testing.assert_array_equal(labels[arrays[f"rows_{part}"]], arrays[f"y_{part}"])
    images, labels, *_ = read_part("kmnist", "test")
    np.testing.assert_array_equal(images[arrays["rows_kmnist"]], arrays["kmnist"])
    assert np.bincount(labels[arrays["rows_kmnist"]]).tolist() == [50] * 10
    images = read_part("omniglot", "test").images
    np.testing.assert_array_equal(images[arrays["rows_omniglot"]], arrays["omniglot"])
