"""Logit of pixels and signed powers: against scipy, in scikit-learn, and before densities."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logit
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl import DIPClassifier
from dipedl.datasets import load_digits
from dipedl.density import GaussianDensity, GDADensity, KNNDensity, RelativeDensity
from dipedl.preprocessing import LogitPixels, SignedPower
from weekly import sample_of

GREYS = np.linspace(0, 1, 256)[:, None]


@pytest.mark.parametrize("lam", [0.0, 1e-6, 0.05])
def test_logit_of_the_middle_of_each_grey_level(lam):
    middle = (np.arange(256)[:, None] + 0.5) / 256
    expected = logit(lam + (1 - 2 * lam) * middle)
    np.testing.assert_allclose(LogitPixels(lam=lam).fit_transform(GREYS), expected, rtol=1e-12)


def test_agrees_with_the_map_of_the_flows():
    torch = pytest.importorskip("torch")
    from dipedl.networks import Dequantization

    pixels = torch.from_numpy(GREYS)
    flow_side, _ = Dequantization().build(pixels)(pixels)
    np.testing.assert_allclose(LogitPixels().fit_transform(GREYS), flow_side.numpy(), rtol=1e-9)


def test_float32_rounding_is_let_through_but_not_images_of_0_to_255():
    nearly = np.array([[0.0, 1.0 + 1e-7]], dtype=np.float32)
    assert np.isfinite(LogitPixels().fit_transform(nearly)).all()
    with pytest.raises(ValueError, match=r"X must hold pixels in \[0, 1\].*divide images"):
        LogitPixels().fit(255 * GREYS)
    with pytest.raises(ValueError, match="divide images"):
        LogitPixels().fit(GREYS).transform(-GREYS)


@pytest.mark.parametrize("parameter", [{"levels": 1}, {"lam": 0.5}, {"lam": -1e-9}])
def test_parameters_out_of_range(parameter):
    with pytest.raises(ValueError, match=next(iter(parameter))):
        LogitPixels(**parameter).fit(GREYS)


def test_as_features_of_a_dip_classifier_inverted_images_are_flagged():
    data = load_digits()
    X = data.X_train
    model = DIPClassifier(
        LogisticRegression(max_iter=500),
        density=GDADensity(shrinkage=1e-2),
        features=LogitPixels(levels=17),
    ).fit(X, data.y_train)
    assert clone(model).features.levels == 17
    u_id, u_ood = model.uncertainty(data.X_test), model.uncertainty(1 - data.X_test)
    assert np.median(u_id) < 0.1 < 0.9 < u_ood.min()


X = np.array([[-4.0, 0.0, 0.25], [9.0, -1.0, 1e300]])


@parametrize_with_checks([SignedPower(), SignedPower(0)])
def test_scikit_learn(estimator, check):
    check(estimator)


def test_formula():
    np.testing.assert_allclose(SignedPower(1).fit_transform(X), X)
    np.testing.assert_allclose(
        SignedPower(0.5).fit_transform(X), [[-2, 0, 0.5], [3, -1, 1e150]], rtol=1e-12
    )
    expected = [[-np.log(5), 0, np.log(1.25)], [np.log(10), -np.log(2), 300 * np.log(10)]]
    np.testing.assert_allclose(SignedPower(0).fit_transform(X), expected, rtol=1e-12)


@pytest.mark.parametrize("exponent", [0, 0.1, 0.5, 1])
def test_odd_and_increasing(exponent):
    x = np.linspace(-3, 3, 101)[:, None]
    y = SignedPower(exponent).fit_transform(x)
    np.testing.assert_allclose(y, -y[::-1], atol=1e-15)
    assert (np.diff(y[:, 0]) > 0).all()


@pytest.mark.parametrize("exponent", [-0.1, 1.1, float("nan")])
def test_exponent_out_of_range(exponent):
    with pytest.raises(ValueError, match=r"exponent must be in \[0, 1\], got"):
        SignedPower(exponent).fit(X)


def test_exponent_that_is_no_number():
    with pytest.raises(TypeError, match="exponent must be a number"):
        SignedPower("half").fit(X)


def test_squares_of_normal_features_are_normal_again(rng):
    """log p of the powers minus the Jacobian is a log-density of the features, and a better one."""
    root = rng.normal(6, 1, size=(2000, 3))
    squares = root**2
    pipeline = make_pipeline(SignedPower(0.5), GaussianDensity()).fit(squares[:1000])
    score = pipeline.score_samples(squares[1000:])
    exact = stats.norm(6, 1).logpdf(root[1000:]).sum(axis=1)
    assert np.corrcoef(score, exact)[0, 1] > 0.99
    jacobian = np.log(2 * root[1000:]).sum(axis=1)
    plain = GaussianDensity().fit(squares[:1000]).score_samples(squares[1000:])
    assert (score - jacobian).mean() > plain.mean()


RECIPES = [
    make_pipeline(Normalizer(), GDADensity()),
    make_pipeline(Normalizer(), KNNDensity(10)),
    make_pipeline(StandardScaler(), GDADensity("tied")),
    make_pipeline(PCA(16, whiten=True, random_state=0), GDADensity()),
    make_pipeline(SignedPower(), GDADensity()),
    make_pipeline(SignedPower(), RelativeDensity()),
]


@pytest.mark.parametrize(
    "density", sample_of(RECIPES, 0, 1, 3, 5), ids=lambda p: "-".join(n for n, _ in p.steps)
)
def test_a_pipeline_is_a_density(density):
    data = load_digits()
    rows = np.flatnonzero(data.y_train >= 0)[:400]
    model = DIPClassifier(density=density, features="passthrough")
    model.fit(data.X_train[rows], data.y_train[rows])
    inverted = model.score_samples(1 - data.X_test)
    assert (np.median(model.score_samples(data.X_test)) > inverted).mean() > 0.95
