import os
import sys

import pandas as pd
import pytest

from passengers import keep_model, passengers


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A folder with model.dipedl, and in new/ five files of 40 rows, which nobody changes."""
    pytest.importorskip("safetensors")
    folder = keep_model(tmp_path_factory.mktemp("engines"))
    for i in range(5):
        file = folder / "new" / f"ship={'ab'[i % 2]}" / f"{i}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        passengers(40, seed=10 + i).to_parquet(file, row_group_size=15, index=False)
    return folder


@pytest.fixture(scope="session")
def answers(kept):
    """Answers to the rows of all files by ``dipedl score``, file by file."""
    from dipedl.apps.large.scoring import AT_SCALE
    from dipedl.apps.table.reading import open_table
    from dipedl.apps.table.score import score_table
    from dipedl.apps.table.table_model import read_model

    model, out = read_model(kept / "model.dipedl"), kept / "by_hand.parquet"
    found = {}
    for file in sorted((kept / "new").rglob("*.parquet")):
        score_table(model, open_table(file), out, AT_SCALE)
        found[file.relative_to(kept / "new").as_posix()] = pd.read_parquet(out)
    return found


@pytest.fixture(scope="session")
def ray_engine():
    """Two workers on this machine, for all tests of a process."""
    pytest.importorskip("ray")
    from dipedl.apps.large import RayEngine

    with pytest.MonkeyPatch.context() as patch:
        # Workers import the modules of the tests, and are as urgent as these.
        patch.setenv("PYTHONPATH", os.pathsep.join(path for path in sys.path if path))
        patch.setenv("RAY_worker_niceness", "0")
        with RayEngine(workers=2) as engine:
            yield engine
