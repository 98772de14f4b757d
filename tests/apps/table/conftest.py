import pytest

from passengers import keep_model


@pytest.fixture(scope="session")
def run():
    """The command, in this process."""
    typer_testing = pytest.importorskip("typer.testing")
    from dipedl.apps.cli.app import app

    return lambda *arguments: typer_testing.CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder with passengers.csv, new.csv and model.dipedl, which nobody changes."""
    pytest.importorskip("safetensors")
    return keep_model(tmp_path_factory.mktemp("own_data"))
