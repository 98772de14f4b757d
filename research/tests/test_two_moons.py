import json

import numpy as np
import pytest
from sklearn.metrics import pairwise_distances

pytest.importorskip("torch")

from dipedl.density import KernelDensity
from dipedl_bench.studies import two_moons
from dipedl_bench.studies.two_moons import EDL, KINDS, RAW, SCORED


@pytest.fixture(scope="module")
def moons():
    return two_moons.run(KernelDensity(), n_points=150, epochs=25, step=0.25)


def plane_of(moons):
    """Centres of the cells of the maps, (h, w, 2)."""
    left, right, bottom, top = moons.extent
    h, w = moons.maps[EDL]["vacuity"].shape
    across, up = left + (np.arange(w) + 0.5) * 0.25, bottom + (np.arange(h) + 0.5) * 0.25
    assert across[-1] + 0.125 == pytest.approx(right) and up[-1] + 0.125 == pytest.approx(top)
    return np.stack(np.meshgrid(across, up), axis=-1)


def test_data_are_split_four_to_one_and_maps_reach_beyond_them(moons):
    assert (len(moons.X_train), len(moons.X_test)) == (120, 30)
    X = np.concatenate([moons.X_train, moons.X_test])
    left, right, bottom, top = moons.extent
    assert left == pytest.approx(X[:, 0].min() - 1.5 - 0.125)
    assert bottom == pytest.approx(X[:, 1].min() - 1.5 - 0.125)
    assert right > X[:, 0].max() + 1.2 and top > X[:, 1].max() + 1.2


@pytest.mark.parametrize("method", [EDL, RAW, SCORED])
def test_maps_hold_the_models_answers_the_right_way_up(moons, method):
    plane, rng = plane_of(moons), np.random.default_rng(0)
    for _ in range(5):
        i, j = rng.integers(plane.shape[0]), rng.integers(plane.shape[1])
        d = moons.models[method].predict_dirichlet(plane[i, j][None])
        for kind in KINDS:
            assert moons.maps[method][kind][i, j] == pytest.approx(getattr(d, kind)[0], rel=1e-6)


def test_raw_is_definition_3_1_to_the_letter(moons):
    """alpha = 1 + n p(x) p(y | x), from the parts themselves."""
    model, X = moons.models[RAW], moons.X_test
    p = np.exp(KernelDensity().fit(moons.X_train).score_samples(X))
    expected = 1 + 120 * p[:, None] * model.estimator_.predict_proba(X)
    np.testing.assert_allclose(model.predict_dirichlet(X).concentration, expected, rtol=1e-9)


def test_z_scored_differs_in_its_normaliser_only(moons):
    raw, scored = (moons.models[name].predict_dirichlet(moons.X_test) for name in (RAW, SCORED))
    log_p = moons.models[RAW].density_.score_samples(moons.X_train)
    z = (raw.log_evidence - np.log(120) - log_p.mean()) / log_p.std()
    np.testing.assert_allclose(scored.log_evidence, np.log(120) + z, rtol=1e-9)


def test_rows_say_what_the_figure_shows(moons):
    found = two_moons.rows(moons)
    assert json.loads(json.dumps(found)) == found
    gap = pairwise_distances(plane_of(moons).reshape(-1, 2), moons.X_train).min(axis=1)
    for row in found:
        away = moons.maps[row["method"]]["vacuity"].ravel()[gap >= 1.0]
        assert row["vacuity_away"] == pytest.approx(away.mean())
        assert row["vacuity_away_min"] == pytest.approx(away.min())
        right = moons.models[row["method"]].predict(moons.X_test) == moons.y_test
        assert row["accuracy"] == right.mean()
        evidence = moons.models[row["method"]].predict_dirichlet(moons.X_train).concentration - 1
        assert row["dead_classes"] == list(np.flatnonzero(evidence.max(axis=0) == 0))


def test_away_from_the_data_only_dip_edl_returns_to_the_prior(moons):
    away = {row["method"]: row["vacuity_away"] for row in two_moons.rows(moons)}
    assert away[RAW] > 0.95 and away[SCORED] > 0.95
    assert away[EDL] < 0.8


def test_dead_class_is_said(moons):
    class Dead:
        def predict_dirichlet(self, X):
            from dipedl import Dirichlet

            return Dirichlet(np.column_stack([np.ones(len(X)), 1.0 + np.arange(len(X))]))

    assert two_moons._dead_classes(Dead(), moons.X_train) == [0]


@pytest.mark.parametrize("step", [0, -1.0, np.nan])
def test_step_out_of_range_is_refused(step):
    with pytest.raises(ValueError, match="step must be > 0"):
        two_moons.run(step=step)
