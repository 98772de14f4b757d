"""Closed forms against high precision (mpmath), scipy and Monte Carlo."""

import pickle
import warnings

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats

from dipedl import Dirichlet

torch = pytest.importorskip("torch")
mp.mp.dps = 60

SCALARS = "strength vacuity total aleatoric epistemic differential_entropy".split()
WIDE = 10.0 ** np.random.default_rng(0).uniform(-8, 12, (120, 4))
SPECIAL = np.array(
    [
        [1e12] * 4,
        [1e-8] * 4,
        [1e12, 1e-8, 1e-8, 1e-8],
        [1.0] * 4,
        [16.0, 16.0, 15.999, 17.0],
        [1e12, 1.3e12, 0.7e12, 1e12],
    ]
)
ALPHA = np.concatenate([WIDE, SPECIAL])
moderate = arrays(np.float64, (1, 4), elements=st.floats(0.3, 60))


def exact(alpha):
    """Total, aleatoric, epistemic, differential entropy, with 60 digits."""
    a = [mp.mpf(float(x)) for x in alpha]
    s, k = sum(a), len(a)
    total = -sum(x / s * mp.log(x / s) for x in a)
    aleatoric = mp.digamma(s + 1) - sum(x / s * mp.digamma(x + 1) for x in a)
    log_beta = sum(map(mp.loggamma, a)) - mp.loggamma(s)
    differential = log_beta + (s - k) * mp.digamma(s) - sum((x - 1) * mp.digamma(x) for x in a)
    return [float(v) for v in (total, aleatoric, total - aleatoric, differential)]


def exact_kl(alpha, beta):
    a, b = ([mp.mpf(float(x)) for x in v] for v in (alpha, beta))
    s = sum(a)
    return float(
        mp.loggamma(s)
        - mp.loggamma(sum(b))
        - sum(map(mp.loggamma, a))
        + sum(map(mp.loggamma, b))
        + sum((x - y) * (mp.digamma(x) - mp.digamma(s)) for x, y in zip(a, b, strict=True))
    )


@pytest.fixture(scope="module")
def reference():
    return np.array([exact(a) for a in ALPHA])


@pytest.mark.parametrize(
    ("name", "column"),
    [("total", 0), ("aleatoric", 1), ("epistemic", 2), ("differential_entropy", 3)],
)
def test_entropies_are_exact_from_1e_8_to_1e12(name, column, reference):
    # Absolute floor: the aleatoric part of nearly one-hot rows is below the rounding of 1.
    np.testing.assert_allclose(
        getattr(Dirichlet(ALPHA), name), reference[:, column], rtol=1e-11, atol=2e-14
    )


def test_kl_is_exact_for_far_and_for_near_pairs():
    rng = np.random.default_rng(1)
    beta = 10.0 ** rng.uniform(-8, 12, ALPHA.shape)
    beta[-40:] = ALPHA[-40:] * rng.uniform(0.9, 1.1, (40, 4))
    beta[-3:] = 2 * ALPHA[-3:]
    got = Dirichlet(ALPHA).kl_divergence(Dirichlet(beta))
    np.testing.assert_allclose(
        got, [exact_kl(a, b) for a, b in zip(ALPHA, beta, strict=True)], rtol=1e-10
    )
    np.testing.assert_allclose(got, Dirichlet(ALPHA).kl_divergence(beta), rtol=0)


def test_kl_to_itself_is_zero_and_a_shared_prior_broadcasts():
    d = Dirichlet(WIDE)
    assert np.abs(d.kl_divergence(d)).max() == 0
    np.testing.assert_array_equal(d.kl_divergence(np.ones(4)), d.kl_divergence(np.ones_like(WIDE)))


def test_against_scipy():
    rng = np.random.default_rng(2)
    alpha = rng.uniform(0.5, 30, (20, 3))
    d = Dirichlet(alpha)
    p = rng.dirichlet(np.ones(3), 20)
    ours = (d.mean, d.variance, d.differential_entropy, d.log_prob(p))
    for i, a in enumerate(alpha):
        s = stats.dirichlet(a)
        theirs = (s.mean(), s.var(), s.entropy(), s.logpdf(p[i]))
        for got, expected in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(got[i], expected, rtol=1e-10)
        low, high = d.credible_interval(0.9)
        b = stats.beta(a, a.sum() - a)
        np.testing.assert_allclose([low[i], high[i]], [b.ppf(0.05), b.ppf(0.95)], rtol=1e-9)


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_credible_interval_holds_its_mass_for_large_concentrations(level):
    a = np.array([[3e11, 7e11], [2e5, 1e12], [5.0, 1e12]])
    low, high = Dirichlet(a).credible_interval(level)
    np.testing.assert_array_less(low, high)
    z = stats.norm.ppf(0.5 + level / 2)
    d = Dirichlet(a)
    sd = np.sqrt(d.variance)
    np.testing.assert_allclose(high[:2] - low[:2], 2 * z * sd[:2], rtol=1e-2)


@given(moderate)
def test_uncertainties_against_monte_carlo(alpha):
    m = 20_000
    d = Dirichlet(alpha)
    p = np.random.default_rng(3).dirichlet(alpha[0], m)
    entropy = special.entr(p).sum(axis=1)
    for got, draws in (
        (d.aleatoric, entropy),
        (d.variance[0, 1], (p[:, 1] - d.mean[0, 1]) ** 2),
        (-d.differential_entropy, stats.dirichlet(alpha[0]).logpdf(p.T)),
    ):
        assert abs(float(np.squeeze(got)) - draws.mean()) < 6 * draws.std() / np.sqrt(m) + 1e-12


@given(moderate, st.floats(1.5, 50))
def test_order_of_the_uncertainties(alpha, factor):
    d, more = Dirichlet(alpha), Dirichlet(alpha * factor)
    assert 0 <= d.epistemic[0] <= d.total[0] <= np.log(4) + 1e-12
    np.testing.assert_allclose(d.total, d.aleatoric + d.epistemic, rtol=1e-12)
    assert more.epistemic[0] < d.epistemic[0]
    assert more.vacuity[0] < d.vacuity[0] or d.vacuity[0] == 1


def test_log_prob_at_the_edge_of_the_simplex():
    d = Dirichlet(np.array([[2.0, 2.0], [0.5, 2.0], [1.0, 2.0]]))
    np.testing.assert_allclose(d.log_prob(np.array([[0.0, 1.0]] * 3)), [-np.inf, np.inf, np.log(2)])


def test_log_prob_is_accurate_where_the_textbook_formula_has_no_digits_left():
    a = np.array([[3e11, 5e11, 2e11]])
    p = np.array([[0.3 + 1e-7, 0.5, 0.2 - 1e-7]])
    p[0, 1] = 1 - p[0, 0] - p[0, 2]
    q = [mp.mpf(float(x)) for x in p[0]]
    b = [mp.mpf(float(x)) for x in a[0]]
    expected = mp.loggamma(sum(b)) + sum(
        (x - 1) * mp.log(y) - mp.loggamma(x) for x, y in zip(b, q, strict=True)
    )
    # p sums to one only to 1e-16, and the concentration of 1e12 multiplies that.
    assert abs(Dirichlet(a).log_prob(p)[0] - float(expected)) < 1e-3


def test_sampling_has_the_right_moments_and_survives_tiny_concentrations():
    d = Dirichlet(np.array([[0.3, 2.0, 5.0], [1e-8, 1e-8, 2e-8]]))
    draws = d.sample(20_000, 5)
    assert draws.shape == (20_000, 2, 3)
    np.testing.assert_allclose(draws.sum(-1), 1, atol=1e-12)
    error = 6 * np.sqrt(d.variance / 20_000)
    np.testing.assert_array_less(np.abs(draws.mean(0) - d.mean), error)
    np.testing.assert_array_equal(draws[:50], d.sample(20_000, np.random.default_rng(5))[:50])


def test_update_is_bayes_rule():
    """Posterior density = prior density x tempered likelihood, up to a constant."""
    rng = np.random.default_rng(6)
    alpha, counts, nu = rng.uniform(0.5, 4, 3), np.array([2.0, 0.0, 1.0]), 0.7
    p = rng.dirichlet(np.ones(3), 50)
    prior = Dirichlet(np.tile(alpha, (50, 1)), prior=alpha)
    post = prior.update(counts, nu=nu)
    ratio = post.log_prob(p) - prior.log_prob(p) - nu * (np.log(p) @ counts)
    assert np.ptp(ratio) < 1e-11
    np.testing.assert_allclose(np.exp(post.log_evidence), nu * counts.sum())
    np.testing.assert_allclose(post.vacuity, alpha.sum() / (alpha.sum() + nu * 3))


def test_update_without_counts_changes_nothing():
    d = Dirichlet(np.ones((2, 3)))
    same = d.update(np.zeros(3))
    np.testing.assert_array_equal(same.concentration, d.concentration)
    assert (same.log_evidence == -np.inf).all()


def test_from_evidence_is_the_paper_formula_and_keeps_the_log():
    z = np.array([0.0, -40.0, -5000.0, -np.inf, 900.0])
    P = np.full((5, 2), 0.5)
    prior = np.array([1.0, 3.0])
    d = Dirichlet.from_evidence(z, P, prior)
    np.testing.assert_allclose(d.concentration[0], prior + 0.5)
    np.testing.assert_array_equal(d.concentration[2], prior)
    np.testing.assert_array_equal(d.log_evidence, z)
    np.testing.assert_allclose(d.vacuity[:2], 4 / (4 + np.exp(z[:2])), rtol=1e-15)
    np.testing.assert_allclose(d.mean[3], prior / 4)
    assert np.isfinite(d.concentration).all()
    assert np.isfinite(d.total).all() and np.isfinite(d.epistemic).all()
    assert (np.diff(d.log_evidence[:4]) < 0).all(), "the ranking outlives the concentration"


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_torch_gives_the_same_numbers(dtype):
    tolerance = 1e-10 if dtype is torch.float64 else 1e-5
    rng = np.random.default_rng(7)
    alpha = 10.0 ** rng.uniform(-2, 4, (50, 5))
    alpha = torch.tensor(alpha, dtype=dtype).double().numpy()
    t, d = Dirichlet(torch.tensor(alpha, dtype=dtype)), Dirichlet(alpha)
    beta = rng.uniform(0.5, 2, 5)
    p = rng.dirichlet(np.full(5, 5.0), 50)
    pairs = [(getattr(t, n), getattr(d, n)) for n in [*SCALARS, "mean", "variance"]]
    pairs += [
        (t.kl_divergence(beta), d.kl_divergence(beta)),
        (t.update(np.ones(5)).log_evidence, d.update(np.ones(5)).log_evidence),
        *zip(t.credible_interval(), d.credible_interval(), strict=True),
    ]
    if dtype is torch.float64:
        pairs += [(t.log_prob(p), d.log_prob(p))]
    for ours, numpys in pairs:
        assert ours.dtype is dtype
        np.testing.assert_allclose(
            ours.numpy(), numpys, rtol=tolerance, atol=tolerance, equal_nan=True
        )
    assert t.sample(3, 0).shape == (3, 50, 5)


@pytest.mark.parametrize("name", SCALARS)
def test_gradients_are_right_on_both_sides_of_the_series(name):
    alpha = torch.tensor([[0.3, 2.0, 40.0], [20.0, 30.0, 15.0]], dtype=torch.float64)
    alpha.requires_grad_(True)
    assert torch.autograd.gradcheck(lambda a: getattr(Dirichlet(a), name), (alpha,))


def test_gradient_of_kl():
    alpha = torch.tensor([[0.3, 2.0, 40.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a: Dirichlet(a).kl_divergence([1.0, 2.0, 3.0]), alpha)


def test_is_immutable_and_slices():
    alpha = np.array([[2.0, 3.0], [4.0, 5.0], [1.0, 1.0]])
    d = Dirichlet(alpha, prior=[0.5, 1.0])
    alpha[0, 0] = 99.0
    assert d.concentration[0, 0] == 2.0
    with pytest.raises(ValueError, match="read-only"):
        d.concentration[0, 0] = 7.0
    with pytest.raises(AttributeError):
        d.concentration = alpha
    again = pickle.loads(pickle.dumps(d))
    for array in (d.mean, d.total, again.concentration, again.mean):
        with pytest.raises(ValueError, match="read-only"):
            array[:] = 0
    assert len(d) == 3 and len(d[1]) == 1 and len(d[d.vacuity < 0.5]) == 2
    np.testing.assert_array_equal(d[1:].mean, d.mean[1:])
    assert [float(row.strength[0]) for row in d] == [5.0, 9.0, 2.0]
    assert repr(d) == "Dirichlet(n=3, k=2, dtype=float64)"
    with pytest.raises(IndexError):
        d[7]


def test_rows_with_less_than_the_prior_hold_no_evidence():
    d = Dirichlet(np.array([[0.2, 0.3]]))
    assert d.log_evidence[0] == -np.inf and d.vacuity[0] == 1


def test_no_warning_on_extreme_input():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        d = Dirichlet(ALPHA)
        for name in [*SCALARS, "mean", "variance"]:
            getattr(d, name)


ONES, TWO = np.ones((2, 3)), [[1.0, 1.0]]
#: Its sum is .996 in this type.
HALF = torch.tensor([[0.05, 0.37, 0.58]], dtype=torch.bfloat16)
#: Call, error, and a pattern with the named argument and what came.
REFUSED = [
    (lambda: Dirichlet(np.ones(3)), ValueError, r"concentration must have .*got \(3,\)"),
    (lambda: Dirichlet(np.ones((3, 1))), ValueError, "concentration must .*k >= 2"),
    (lambda: Dirichlet([[1.0, -1.0]]), ValueError, "concentration .*got -1.0"),
    (lambda: Dirichlet([[1.0, np.nan]]), ValueError, "concentration must .*got nan"),
    (lambda: Dirichlet(TWO, prior=[1.0] * 3), ValueError, r"prior must .*\(2,\), got \(3,\)"),
    (lambda: Dirichlet(TWO, prior=0.0), ValueError, "prior must be finite and > 0, got 0.0"),
    (lambda: Dirichlet(TWO, log_evidence=[0.0, 1.0]), ValueError, "log_evidence must have"),
    (lambda: Dirichlet(TWO, log_evidence=[np.nan]), ValueError, "log_evidence must not"),
    (lambda: Dirichlet(ONES).log_prob(ONES[:, :2]), ValueError, r"p must have shape \(2, 3\)"),
    (lambda: Dirichlet(ONES).log_prob(ONES), ValueError, "rows of p must sum to 1.*3"),
    (lambda: Dirichlet(ONES).log_prob(ONES * np.nan), ValueError, "p must hold finite"),
    (lambda: Dirichlet(ONES).credible_interval(1.0), ValueError, "level must be strictly between"),
    (lambda: Dirichlet(ONES).update([1.0, -1.0, 0.0]), ValueError, "counts .*>= 0"),
    (lambda: Dirichlet(ONES).update(ONES[0], nu=0.0), ValueError, "nu must be finite and > 0"),
    (lambda: Dirichlet(ONES).update(ONES[:, :1]), ValueError, r"counts .*\(2, 3\) or \(3,\)"),
    (lambda: Dirichlet(ONES).kl_divergence(ONES[:, :1]), ValueError, "other must have shape"),
    (lambda: Dirichlet(ONES).kl_divergence([1.0, 0.0, 1.0]), ValueError, "other must be finite"),
    (lambda: Dirichlet.from_evidence([0.0, 1.0], ONES[:1] / 3), ValueError, "one entry per row"),
    (lambda: Dirichlet.from_evidence([0.0], ONES[:1]), ValueError, "rows of proba must sum to 1"),
    (
        lambda: Dirichlet.from_evidence(HALF[:, 0], HALF),
        TypeError,
        r"call .float\(\) first",
    ),
    (
        lambda: Dirichlet.from_evidence(np.zeros(2), ONES, ONES[0]),
        ValueError,
        "proba must sum to 1",
    ),
    (lambda: Dirichlet(torch.ones(1, 2).half()), TypeError, r"got torch\.float16"),
    (lambda: Dirichlet.from_evidence(torch.zeros(1), ONES[:1] / 3), TypeError, "do not mix"),
    (lambda: Dirichlet(ONES).sample(2, torch.Generator()), TypeError, "numpy Generator"),
]


@pytest.mark.parametrize(("call", "error", "message"), REFUSED)
def test_it_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
