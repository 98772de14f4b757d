import gc
import sys
from contextlib import suppress
from functools import cache

import pytest
from hypothesis import settings

from benchmark_scripts import benchmark  # noqa: F401

# What importing all tests makes stays until the end: it is not looked through again and again.
gc.disable()


def pytest_configure(config):
    if not config.getoption("numprocesses", None):  # the process that deals out runs no test
        import shortcuts  # noqa: F401
    quick = "not slow" in config.getoption("markexpr")
    settings.register_profile(
        "default", deadline=None, derandomize=True, max_examples=25 if quick else 60
    )
    settings.load_profile("default")


def pytest_collection_finish():
    learning = sys.modules.get("dipedl.apps.table.fit")
    if learning is not None:  # every fit of a table times its answers: to few rows, once
        learning._TIMED, learning._LONG = 20, 0.0
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory):
    """The key of this user lies in a folder of the tests, in processes that they start too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


#: Folders and files whose subject is no fold, by the folds of a default fit there; five otherwise.
FEW_FOLDS = {
    2: "table cli serve adapters onnx io large monitor plots spectra explanation fuzz"
    " preprocessing streaming density evidence baselines demo test_caution test_classifier"
    " test_decisions test_encoding test_far_from_everything test_gaps test_notebook test_one_state"
    " test_refusals test_tables_kept test_threads test_through_pipelines",
    3: "test_any_classifier test_classifier_sklearn test_inputs test_own_steps",
}
FOLDS = {name: folds for folds, names in FEW_FOLDS.items() for name in names.split()}


@pytest.fixture(scope="module", autouse=True)
def few_folds(request):
    """Most of a default fit are the fits to its folds."""
    crossfit = sys.modules.get("dipedl.calibration.crossfit")
    folds = FOLDS.get(request.path.parent.name) or FOLDS.get(request.path.stem)
    with pytest.MonkeyPatch.context() as patch:
        if crossfit is not None and folds:
            patch.setattr(crossfit, "_FOLDS", folds, raising=False)
        yield


@pytest.fixture(scope="module", autouse=True)
def one_thread(request):
    """Where problems are tiny threads would only wait for one another."""
    from threadpoolctl import threadpool_limits

    tiny = request.path.parent.name in {"baselines", "density"}
    with threadpool_limits(1 if tiny else None):
        yield


@pytest.fixture(scope="module")
def torch_operators():
    """Each export makes the same table of thousands of operators anew: once is enough."""
    with pytest.MonkeyPatch.context() as patch:
        with suppress(ImportError):
            from torch.onnx._internal.exporter._registration import ONNXRegistry

            made = classmethod(cache(ONNXRegistry.from_torchlib.__func__))
            patch.setattr(ONNXRegistry, "from_torchlib", made)
        yield


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(20261121)
