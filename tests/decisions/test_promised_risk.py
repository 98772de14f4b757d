import numpy as np
import pytest

pytest.importorskip("matplotlib")

from dipedl.decisions import reject_curve
from dipedl.plots import promised_risk


def curve_of(rng):
    u = rng.random(1000)
    return reject_curve(u, rng.random(1000) < 0.3 * u**2)


def test_draws_the_bounds_the_observed_rate_and_the_choice(rng):
    curve = curve_of(rng)
    ax = promised_risk(curve, risk=0.05, label="total")
    bounds, observed, target, choice = ax.lines
    np.testing.assert_array_equal(bounds.get_ydata(), curve.upper)
    np.testing.assert_array_equal(observed.get_ydata(), curve.risk)
    assert set(target.get_ydata()) == {0.05}
    (x,), (y,) = choice.get_data()
    chosen = curve.coverage[curve.thresholds == curve.threshold(0.05)]
    assert x == chosen and y <= 0.05
    assert promised_risk(curve, ax=ax) is ax and len(ax.lines) == 6


def test_a_risk_that_cannot_be_promised_has_no_dot(rng):
    *_, choice = promised_risk(curve_of(rng), risk=0.001).lines
    assert len(choice.get_xdata()) == 0
