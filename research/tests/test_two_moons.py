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
