import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)


@pytest.fixture(scope="session")
def demo_run(tmp_path_factory):
    """The small demo and its stages; the processes of one run of the tests share a folder."""
    from small_demo import small_demo

    own = tmp_path_factory.getbasetemp()
    return small_demo(own.parent if own.name.startswith("popen-") else own)
