import pytest
from small_parts import small_parts
from tiny_suite import TINY


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
