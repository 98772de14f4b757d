import pytest
from passengers import passengers


@pytest.fixture
def run():
    """The command, in this process."""
    typer_testing = pytest.importorskip("typer.testing")
    from dipedl.cli.app import app

    return lambda *arguments: typer_testing.CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder with passengers.csv, new.csv and model.dipedl, which nobody changes."""
    pytest.importorskip("skops")
    from dipedl.own_data.learning import Order, learn
    from dipedl.own_data.saved import keep
    from dipedl.own_data.tables.reading import open_table

    folder = tmp_path_factory.mktemp("own_data")
    passengers().to_csv(folder / "passengers.csv", index=False)
    passengers(60, seed=1).to_csv(folder / "new.csv", index=False)
    order = Order("survived", model="linear", drop=["passenger"])
    learned = learn(open_table(folder / "passengers.csv"), order)
    keep(learned.model, folder / "model.dipedl")
    return folder
