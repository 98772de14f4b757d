import importlib.util
from pathlib import Path

import numpy as np
import pytest

from dipedl.datasets import mini_mnist

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


@pytest.mark.data
def test_script_reproduces_the_arrays(full_dir, make_mini, arrays, tmp_path, capsys):
    again = make_mini.select()
    assert again.keys() == arrays.keys()
    for name in arrays:
        np.testing.assert_array_equal(again[name], arrays[name], strict=True)
    make_mini.main(full_dir, tmp_path / "mini.npz")
    assert mini_mnist.SHA256 in capsys.readouterr().out
