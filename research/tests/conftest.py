import sys

import pytest

from benchmark_scripts import benchmark  # noqa: F401


def pytest_configure(config):
    if not config.getoption("numprocesses", None):  # the process that deals out runs no test
        import shortcuts  # noqa: F401


def pytest_collection_finish():
    process = sys.modules.get("dipedl_bench.running.process")
    if process is not None:  # each process imports them: 800 modules for the first optimiser
        process._PRELOADED += ("torch._dynamo", "dipedl_bench.checkpoints", "dipedl.classifier")


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory):
    """The key of this user lies in a folder of the tests, in processes that they start too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def rng():
    import numpy as np

    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def parts():
    """Parts of an invented DIP-EDL, not to be changed."""
    from small_parts import small_parts

    return small_parts()


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """File of the tiny suite."""
    from tiny_suite import TINY

    path = tmp_path_factory.mktemp("suite") / "tiny.toml"
    path.write_text(TINY)
    return path
