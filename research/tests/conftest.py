import numpy as np
import pytest
from small_parts import small_parts
from tiny_suite import TINY

import shortcuts  # noqa: F401
from benchmark_scripts import benchmark  # noqa: F401


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory):
    """The key of this user lies in a folder of the tests, in processes that they start too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def parts():
    """Parts of an invented DIP-EDL, not to be changed."""
    return small_parts()


@pytest.fixture(scope="session")
def suite(tmp_path_factory):
    """File of the tiny suite."""
    path = tmp_path_factory.mktemp("suite") / "tiny.toml"
    path.write_text(TINY)
    return path
