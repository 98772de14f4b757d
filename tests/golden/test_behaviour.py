"""Models fitted today answer as frozen; files of older code are refused and told apart."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("skl2onnx")
pytest.importorskip("onnxruntime")
pytest.importorskip("skops")

from machine import kernels, one_thread, vendor, versions
from models import EXPORTED, MODELS, MODULES, answers, graph_answers, network

import dipedl

pytestmark = pytest.mark.usefixtures("torch_operators")
HERE = Path(__file__).parent
FILES = sorted(HERE.glob("saved/*.dipedl"))
with np.load(HERE / "behaviour.npz") as arrays:
    FROZEN = {key: arrays[key] for key in arrays.files}
VERSIONS = [entry.partition("+")[0] for entry in FROZEN.pop("versions").tolist()]
KERNELS = FROZEN.pop("kernels").tolist()
SAME_KERNELS = kernels() == KERNELS
SAME_NETWORKS = vendor() == str(FROZEN.pop("vendor")) and SAME_KERNELS
NETWORKS = {make.__name__ for make in MODULES}

#: Of float64. Runs, and 1 or 2 threads, agree to the last bit on one kind of processor. With other
#: kernels of BLAS (measured: Haswell and Sandybridge beside SkylakeX) L-BFGS of the default
#: classifier, which stops at a gradient of 1e-4, ends elsewhere: 1e-3 of alpha. All others agree to
#: 1e-5.
FITTED = 1e-12 if SAME_KERNELS else 3e-3
#: Of networks and graphs in float32, and of features of such a network in float64.
SINGLE = 1e-6 if SAME_NETWORKS else 3e-3
DOUBLE = FITTED if SAME_NETWORKS else 3e-3

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


def models():
    """All models; those that are exported as graphs of torch take seconds."""
    for name in MODELS:
        of_torch = name in EXPORTED and name in NETWORKS
        yield pytest.param(name, marks=[pytest.mark.slow] * of_torch, id=name)


@needs_versions
@pytest.mark.parametrize("name", models())
def test_model_fitted_again_answers_as_frozen(name):
    model, X = MODELS[name]()
    found = answers(model, X)
    if name in EXPORTED:
        found |= {f"onnx/{key}": value for key, value in graph_answers(model, X).items()}
    mine = f"{name}/"
    expected = {key.removeprefix(mine): FROZEN[key] for key in FROZEN if key.startswith(mine)}
    tolerance = SINGLE if name in NETWORKS else FITTED
    check(found, expected, DOUBLE if name == "module_fused_double" else tolerance, SINGLE)


def test_every_frozen_model_is_fitted_again():
    assert {key.partition("/")[0] for key in FROZEN} == set(MODELS)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_file_of_older_code_is_refused_by_the_version_that_wrote_it(path):
    refused = "has format version 1, written by dipedl 0.1.0; .* fit the model again and save it"
    with pytest.raises(ValueError, match=refused):
        if path.stem.startswith("module"):
            dipedl.DIPModule.load(path, network()[0])
        else:
            dipedl.load(path)


def test_frozen_versions_are_those_of_development():
    pinned = (HERE.parents[1] / "constraints.txt").read_text(encoding="utf-8").split()
    assert {line.replace(" ", "==") for line in VERSIONS} <= set(pinned)
