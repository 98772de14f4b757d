import io
import json
import logging
from functools import partial

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("fastapi")
pytest.importorskip("prometheus_client")

from fastapi.testclient import TestClient
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.apps.serve import Models, Settings, create_app
from dipedl.apps.serve.telemetry import log_as_json
from dipedl.apps.table.columns import as_inputs
from dipedl.apps.table.reading import open_table
from dipedl.apps.table.table_model import read_model
from dipedl.density import GDADensity
from passengers import keep_model


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder with passengers.csv, new.csv, model.dipedl of a table, plain.dipedl of an array."""
    folder = keep_model(tmp_path_factory.mktemp("serve"))
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    X = rng.normal(size=(300, 4)) + y[:, None]
    clf = DIPClassifier(LogisticRegression(), GDADensity(), random_state=0)
    clf.fit(X, y).save(folder / "plain.dipedl")
    return folder


@pytest.fixture(scope="session")
def models(kept):
    return Models({"people": kept / "model.dipedl", "plain": kept / "plain.dipedl"})


@pytest.fixture(scope="module")
def client(models):
    with TestClient(create_app(models)) as found:
        yield found


@pytest.fixture(scope="session")
def rows(kept):
    """The new rows as JSON has them."""
    return json.loads(pd.read_csv(kept / "new.csv").to_json(orient="records"))


@pytest.fixture(scope="session")
def by_hand(kept):
    """The classifier of the table, and its inputs for the new rows."""
    model = read_model(kept / "model.dipedl")
    piece = next(open_table(kept / "new.csv").pieces())
    X, fine, _ = as_inputs(model.columns, piece.frame, piece.rows)
    assert fine.all()
    return model, X


@pytest.fixture
def served(models):
    """A client of a service with settings of its own."""
    clients = []

    def make(models_=models, **settings):
        made = TestClient(create_app(models_, Settings(**settings)))
        clients.append(made.__enter__())
        return made

    yield make
    for one in clients:
        one.__exit__(None, None, None)


@pytest.fixture
def log():
    """What the service logs."""
    stream = io.StringIO()
    kept = logging.raiseExceptions
    log_as_json(stream)
    read = partial(json.loads, parse_constant=pytest.fail)
    yield lambda: [read(line) for line in stream.getvalue().splitlines()]
    logging.raiseExceptions = kept
    logging.captureWarnings(False)
    for name in ("dipedl.apps.serve", "uvicorn", "py.warnings"):
        logging.getLogger(name).handlers = []
