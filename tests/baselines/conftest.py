import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """The problems are tiny: threads would only wait for one another."""
    with threadpool_limits(1):
        yield
