import json

import numpy as np
import pytest

pytest.importorskip("torch")

from dipedl_bench.studies import toy_vacuity
from dipedl_bench.studies.toys import FOLDER, load_toys


@pytest.fixture(scope="module")
def rows():
    return toy_vacuity.run([1, 10, 100], n_points=60, steps=200, seed=12)


@pytest.fixture(scope="module")
def dead_row():
    (row,) = toy_vacuity.run([10], n_points=100, steps=60, seed=1)
    return row


@pytest.mark.slow
def test_vacuity_is_that_of_the_theory(rows):
    """Proposition 2.12: nu is all that the vacuity knows; the data's own noise is zero here."""
    for row in rows:
        assert row["theory"] == 2 / (2 + row["nu"])
        assert row["mean"] == pytest.approx(row["theory"], abs=0.01)
        assert row["median"] == pytest.approx(row["theory"], abs=0.01)
        assert 0 < row["min"] <= row["median"] <= row["max"] < 1
        assert row["dead_classes"] == []


@pytest.mark.slow
def test_loss_never_beats_its_optimum_and_nears_it(rows):
    """The optimum is -log E[p^nu] / nu over a flat prior: checked here by quadrature."""
    p = (np.arange(100_000) + 0.5) / 100_000
    for row in rows:
        expected = -np.log(np.mean(p ** row["nu"])) / row["nu"]
        assert row["loss_optimum"] == pytest.approx(expected, rel=1e-4)
        assert -1e-6 < row["loss"] - row["loss_optimum"] < 0.03 * row["loss_optimum"]


@pytest.mark.slow
def test_far_from_all_data_the_network_is_more_certain_than_at_them(rows):
    """What the constant hides: no density, so nothing pulls the evidence down out there."""
    for row in rows[1:]:
        assert row["far"] < row["theory"]


def test_dead_unit_is_said_and_not_hidden(dead_row):
    assert len(dead_row["dead_classes"]) == 1
    assert dead_row["max"] == 1.0
    assert dead_row["mean"] > 2 * dead_row["theory"]
    assert dead_row["loss"] > 1.5 * dead_row["loss_optimum"]
    (text,) = toy_vacuity.vacuity_frame([dead_row])["dead"]
    assert text == f"class {dead_row['dead_classes'][0]} never gets evidence"


def test_rows_are_json_with_a_receipt(dead_row):
    rows = [dead_row]
    again = json.loads(json.dumps(rows))
    assert again == rows
    assert {"versions", "commit", "seconds", "seed", "n_points", "steps"} <= set(rows[0])


def test_a_damaged_file_of_results_names_the_command(tmp_path):
    assert load_toys(tmp_path).vacuity == []
    (tmp_path / FOLDER).mkdir()
    (tmp_path / FOLDER / "two_moons.json").write_text("[{")
    with pytest.raises(ValueError, match=r"two_moons\.json' is damaged .*run: dipedl-bench toys"):
        load_toys(tmp_path)
