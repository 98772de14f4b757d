import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("typer")
pytest.importorskip("skops")

from passengers import passengers
from typer.testing import CliRunner

from dipedl.cli.app import app
from dipedl.own_data.learning import Order, learn
from dipedl.own_data.saved import keep
from dipedl.own_data.tables.reading import open_table


def dipedl(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


@pytest.fixture
def run():
    return dipedl


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder with passengers.csv, new.csv and model.dipedl, which nobody changes."""
    folder = tmp_path_factory.mktemp("own_data")
    passengers().to_csv(folder / "passengers.csv", index=False)
    passengers(60, seed=1).to_csv(folder / "new.csv", index=False)
    order = Order("survived", model="linear", drop=["passenger"])
    learned = learn(open_table(folder / "passengers.csv"), order)
    keep(learned.model, folder / "model.dipedl")
    return folder
