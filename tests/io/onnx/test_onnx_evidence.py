"""Calibrators, normalisers, evidence and Dirichlet as graphs, beside the formulas in numpy."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx_tools import TOLERANCE, gap, runner
from scipy import special

from dipedl import Dirichlet, evidence
from dipedl.calibration.temperature import Temperature
from dipedl.evidence import (
    CautionBudget,
    Identity,
    QuantileEvidence,
    RankNormal,
    RobustZScore,
    ZScore,
)
from dipedl.evidence_model import calibrate_in_share
from dipedl.io.onnx import _nodes as ops
from dipedl.io.onnx._model import calibrate, dirichlet, log_evidence, normalise

RNG = np.random.default_rng(0)
SCORES = np.concatenate([RNG.normal(-5, 2, size=300), [-40.0, -5.0, -5.0]])
P = RNG.dirichlet([0.5, 1, 2], size=len(SCORES))
LABELS = (P.cumsum(1) < RNG.random((len(P), 1))).sum(1)
BEHIND = {"n": 303.0, "prior": [1.0, 1.0, 1.0], "gamma": 1.0}
NORMALIZERS = {
    "caution": CautionBudget().fit(SCORES, proba=P, y=LABELS, **BEHIND),
    "quantile": QuantileEvidence(0.02).fit(SCORES, **BEHIND),
    "z": ZScore().fit(SCORES),
    "robust": RobustZScore().fit(SCORES),
    "rank": RankNormal().fit(SCORES),
    "rank-two": RankNormal().fit(np.array([0.0, 3.0])),
    "rank-power-of-two": RankNormal().fit(np.arange(8.0)),
    "identity": Identity().fit(SCORES),
}
score = st.one_of(
    st.sampled_from([*SCORES, -np.inf, -1e308, -1e6, 0.0]),
    st.floats(-1e7, 1e7),
    st.floats(-20, 20),
)


def on_column(build):
    """Run a graph of scores (n,)."""
    run = runner(lambda x: build(x.squeeze(1)), 1)
    return lambda scores: run(np.asarray(scores)[:, None])


@pytest.fixture(scope="module", params=NORMALIZERS)
def normalizer(request):
    fitted = NORMALIZERS[request.param]
    return fitted, on_column(lambda s: normalise(s, fitted))


@given(scores=st.lists(score, min_size=1, max_size=9))
def test_z_is_that_of_the_normalizer(normalizer, scores):
    fitted, run = normalizer
    with np.errstate(over="ignore"):
        assert gap(run(scores), fitted.transform(np.array(scores))) < TOLERANCE


def test_every_normalizer_of_the_library_exports():
    classes = {name for name in evidence.__all__ if isinstance(getattr(evidence, name), type)}
    assert {type(fitted).__name__ for fitted in NORMALIZERS.values()} == classes


def test_another_normalizer_is_named_with_those_that_export():
    class Halved:
        def transform(self, scores):
            return scores / 2

    with pytest.raises(TypeError, match=r"normalizer Halved cannot.*CautionBudget"):
        on_column(lambda s: normalise(s, Halved()))


@pytest.mark.parametrize("temperature", [1.0, 0.3, 4.0])
def test_probabilities_at_a_temperature(temperature):
    fitted = Temperature().fit(P, LABELS)
    fitted.temperature_ = temperature
    Q = np.concatenate([P, np.eye(3), [[0.5, 0.5, 0.0], [1e-300, 1.0, 1e-12]]])
    scores = np.linspace(-3.0, 2.0, len(Q))
    found = _calibrated(fitted)(np.column_stack([scores, Q]))
    expected = calibrate_in_share(fitted, Q, np.clip((scores + 2) / 3, 0, 1), temperature)
    assert gap(found, expected) < 1e-12
    assert np.array_equal(found[len(P) : len(P) + 3], np.eye(3))


def test_no_calibrator_changes_nothing_and_another_is_named():
    rows = np.column_stack([SCORES, P])
    assert np.array_equal(_calibrated(None)(rows), P)
    with pytest.raises(TypeError, match=r"calibrator .* cannot.*Temperature.*passthrough"):
        _calibrated(object())


def _calibrated(calibrator):
    """Run a graph of scores and probabilities, side by side; it sharpens from -2 on to 1."""

    def build(x):
        proba, scores = x.columns(np.arange(1, 4)), x.columns(np.array([0])).squeeze(1)
        temperature = getattr(calibrator, "temperature_", None)
        learned = {"calibrator_": calibrator, "temperature_": temperature}
        return calibrate(proba, SimpleNamespace(**learned, sharpening_=(-2.0, 1.0)), scores) * 1.0

    return runner(build, 4)


@given(z=st.lists(st.one_of(score, st.floats(-800, 5)), min_size=1, max_size=5))
def test_evidence_and_dirichlet_are_those_of_the_formulas(z):
    prior = np.array([0.5, 1.0, 2.5])
    z, p = np.array(z), P[: len(z)]
    for top in (None, 20.0):
        right = evidence.log_evidence(z, 303.0, 0.7, top)
        whole = Dirichlet.from_evidence(right, p, prior)
        for part, known in enumerate([whole.mean, whole.vacuity, whole.log_evidence]):
            run = _posterior(prior, top, part)
            assert gap(run(np.column_stack([z, p])), known) < 1e-9


def _posterior(prior, top, part, _made={}):  # noqa: B006  graphs are built once
    def build(x):
        z = x.columns(np.array([0])).squeeze(1)
        strength = log_evidence(z, 303.0, 0.7, top)
        return [*dirichlet(strength, x.columns(np.arange(1, 4)), prior), strength][part]

    key = (top, part)
    if key not in _made:
        _made[key] = runner(build, 4)
    return _made[key]


def test_vacuity_keeps_its_digits_where_it_is_small():
    run = _posterior(np.array([0.5, 1.0, 2.5]), None, 1)
    z = np.array([50.0, 200.0, 300.0])
    known = 4.0 / (4.0 + 303 * 0.7 * np.exp(z))
    found = run(np.column_stack([z, P[:3]]))
    assert np.abs(found / known - 1).max() < 1e-10


FUNCTIONS = {
    "log_ndtr": (ops.log_ndtr, special.log_ndtr),
    "log1p": (lambda x: ops.log1p(x.apply("Abs")), lambda x: np.log1p(np.abs(x))),
    "soft_plus": (ops.soft_plus, lambda x: np.logaddexp(0.0, x)),
    "sigmoid": (ops.sigmoid, special.expit),
    "softmax": (ops.softmax, lambda x: special.softmax(x, axis=1)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_that_onnx_lacks_are_those_of_scipy(name):
    build, known = FUNCTIONS[name]
    x = np.concatenate([np.linspace(-40, 40, 4001), np.geomspace(1e-300, 1e6, 99)])
    x = np.concatenate([x, -x])[:, None] * [1.0, 0.37]
    found, right = runner(build, 2)(x), known(x)
    big = np.abs(right) > 1e-300
    # Above zero log_ndtr is the log of what is nearly one: relative to its distance from one.
    assert np.abs(found[big] / right[big] - 1).max() < 1e-9


def test_infinite_arguments():
    edge = np.array([[-np.inf, np.inf]])
    assert np.array_equal(runner(ops.log_ndtr, 2)(edge), [[-np.inf, 0.0]])
    assert np.array_equal(runner(ops.soft_plus, 2)(edge), [[0.0, np.inf]])
    assert np.array_equal(runner(ops.sigmoid, 2)(edge), [[0.0, 1.0]])
    assert runner(ops.log_sum_exp, 2)([[-np.inf, -np.inf]]) == -np.inf
    assert runner(ops.log_sum_exp, 2)([[-np.inf, 3.0]]) == 3.0


@pytest.mark.parametrize("sizes", [(2, 2), (7, 64), (3, 5, 1000), (65,)])
def test_tables_of_different_length_are_interpolated_as_numpy_does(rng, sizes):
    knots = [np.sort(rng.normal(size=m)) for m in sizes]
    values = [np.sort(rng.normal(size=m)) for m in sizes]
    some = [np.concatenate([rng.choice(k, 100), [k[0], k[-1], -9, 9, -np.inf]]) for k in knots]
    x = np.column_stack([np.concatenate([s, rng.normal(size=50)]) for s in some])
    run = runner(lambda t: ops.interpolate(t, knots, values), len(sizes))
    right = [np.interp(x[:, c], knots[c], values[c]) for c in range(len(sizes))]
    assert gap(run(x), np.column_stack(right)) < 1e-12
