"""Models fitted today answer as frozen, and files of older code load and answer as they did."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("skops")

import torch
from machine import kernels, one_thread, versions
from models import EXPORTED, MODELS, MODULES, answers, graph_answers, network

import dipedl

HERE = Path(__file__).parent
FILES = sorted(HERE.glob("saved/*.dipedl"))
with np.load(HERE / "behaviour.npz") as arrays:
    FROZEN = {key: arrays[key] for key in arrays.files}
VERSIONS, KERNELS = FROZEN.pop("versions").tolist(), FROZEN.pop("kernels").tolist()
SAME_KERNELS = kernels() == KERNELS
IN_FLOAT32 = {make.__name__ for make in MODULES} - {"module_fused_double"}

#: Of float64. Runs, and 1 or 2 threads, agree to the last bit on one kind of processor. With other
#: kernels of BLAS (measured: Haswell and Sandybridge beside SkylakeX) a fit ends elsewhere: L-BFGS
#: of the default classifier stops at a gradient of 1e-4, which moves alpha by 1e-3, and a training
#: row that ties with itself moves its p-value by 1 / (n + 1). Answers of a loaded model do not.
FITTED = 1e-12 if SAME_KERNELS else 1e-2
LOADED = 1e-12 if SAME_KERNELS else 1e-9
#: Of networks and graphs in float32.
SINGLE = 1e-6 if SAME_KERNELS else 1e-2
SINGLE_LOADED = 1e-6 if SAME_KERNELS else 1e-4

needs_versions = pytest.mark.skipif(
    versions() != VERSIONS, reason=f"fits are those of {VERSIONS}: run tests/golden/freeze.py"
)


@pytest.fixture(scope="module", autouse=True)
def calm():
    with one_thread():
        yield


def check(found, expected, tolerance, single):
    """Same names, shapes, types and discrete values; numbers within the tolerance."""
    assert sorted(found) == sorted(expected)
    for key, right in expected.items():
        answer = np.asarray(found[key])
        assert (answer.shape, answer.dtype) == (right.shape, right.dtype), key
        if right.dtype.kind in "biU":
            np.testing.assert_array_equal(answer, right, err_msg=key)
        else:
            close = single if key.startswith("onnx/") else tolerance
            np.testing.assert_allclose(answer, right, rtol=close, atol=close, err_msg=key)


@needs_versions
@pytest.mark.parametrize("name", MODELS)
def test_model_fitted_again_answers_as_frozen(name):
    model, X = MODELS[name]()
    found = answers(model, X)
    if name in EXPORTED:
        found |= {f"onnx/{key}": value for key, value in graph_answers(model, X).items()}
    mine = f"{name}/"
    expected = {key.removeprefix(mine): FROZEN[key] for key in FROZEN if key.startswith(mine)}
    check(found, expected, SINGLE if name in IN_FLOAT32 else FITTED, SINGLE)


def test_every_frozen_model_is_fitted_again():
    assert {key.partition("/")[0] for key in FROZEN} == set(MODELS)


def loaded(path):
    """The model in a file; a module is read around a network that knows nothing."""
    if not path.stem.startswith("module"):
        return dipedl.load(path, allow_version_mismatch=True)
    blank = network()[0]
    for weights in blank.parameters():
        torch.nn.init.zeros_(weights)
    return dipedl.DIPModule.load(path, blank)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_of_older_code_answers_as_then_or_is_refused_by_its_version(path):
    try:
        model = loaded(path)
    except ValueError as error:
        assert "0.1.0" in str(error), "the error must name the version that wrote the file"
        return
    with np.load(path.with_suffix(".npz")) as arrays:
        expected = {key: arrays[key] for key in arrays.files}
    X = expected.pop("asked:X")
    in_float32 = X.dtype == np.float32
    found = answers(model, torch.tensor(X) if path.stem.startswith("module") else X)
    check(found, expected, SINGLE_LOADED if in_float32 else LOADED, SINGLE_LOADED)


def test_a_changed_last_digit_is_seen():
    right = {"alpha": np.array([1.0, 40.0])}
    check({"alpha": right["alpha"] * (1 + 1e-13)}, right, 1e-12, 1e-6)
    for wrong in (right["alpha"] * (1 + 1e-11), right["alpha"].astype(np.float32)):
        with pytest.raises(AssertionError, match="alpha"):
            check({"alpha": wrong}, right, 1e-12, 1e-6)
