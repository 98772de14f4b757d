import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("default", deadline=None, derandomize=True, max_examples=60)
settings.load_profile("default")


@pytest.fixture
def rng():
    return np.random.default_rng(20261121)
