"""Logit of pixels: against scipy, against the flows' own map, and inside a DIPClassifier."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier
from dipedl.datasets import load_digits
from dipedl.density import GDADensity
from dipedl.preprocessing import LogitPixels

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
