"""Every density as a graph, beside the density itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from onnx_tools import TOLERANCE, gap, rows_like, runner
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from dipedl import density
from dipedl.density import (
    BlockSumDensity,
    CustomDensity,
    DensitySelector,
    FusedDensity,
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    MahalanobisDensity,
    RelativeDensity,
)
from dipedl.dirichlet import confidence as confidence_of
from dipedl.io.onnx._densities import _OF_BOTH, _OF_FEATURES, Seen, confidence, log_density
from dipedl.io.onnx._estimators import Data
from dipedl.preprocessing import LogitPixels, SignedPower

X, Y = load_iris(return_X_y=True)
DENSITIES = {
    "gaussian": GaussianDensity(),
    "gaussian-diag": GaussianDensity("diag"),
    "gda": GDADensity(),
    "gda-tied": GDADensity("tied", class_weights="empirical"),
    "gda-diag": GDADensity("diag"),
    "gda-shared-basis": GDADensity("shared-basis"),
    "mahalanobis": MahalanobisDensity(),
    "mahalanobis-full": MahalanobisDensity("full"),
    "mixture": GaussianMixtureDensity(3, random_state=0),
    "mixture-tied": GaussianMixtureDensity(3, "tied", random_state=0),
    "mixture-diag": GaussianMixtureDensity(3, "diag", random_state=0),
    "mixture-spherical": GaussianMixtureDensity(3, "spherical", random_state=0),
    "knn": KNNDensity(5),
    "kde": KernelDensity(),
    "relative": RelativeDensity(),
    "relative-knn": RelativeDensity(KNNDensity(3), GaussianDensity()),
    "blocks": BlockSumDensity([1, 3]),
    "blocks-standardised": BlockSumDensity([2, 2], KNNDensity(), cv=3),
    "fused": FusedDensity(random_state=0),
    "selector": DensitySelector(random_state=0),
    "frozen": FrozenEstimator(GDADensity().fit(X, Y)),
    "unit": make_pipeline(Normalizer(), KNNDensity()),
    "pipeline": make_pipeline(StandardScaler(), PCA(3), SignedPower(), GDADensity()),
    "power-0": make_pipeline(SignedPower(0), GDADensity()),
}


def graph_of(model, rows=X):
    return runner(lambda x: log_density(model, Seen(Data(x, rows))), rows.shape[1])


@pytest.fixture(scope="module", params=DENSITIES)
def pair(request):
    model = DENSITIES[request.param].fit(X, Y)
    return model, graph_of(model)


@settings(max_examples=12)
@given(Q=rows_like(X))
def test_scores_are_those_of_the_density(pair, Q):
    model, run = pair
    assert gap(run(Q), model.score_samples(Q)) < TOLERANCE


def test_each_row_is_scored_alone_in_any_batch(pair):
    _, run = pair
    whole = run(X)
    assert (
        gap(np.concatenate([run(X[i : i + 1]) for i in range(0, len(X), 30)]), whole[::30]) < 1e-12
    )
    assert gap(np.concatenate([run(X[:1]), run(X[1:8]), run(X[8:])]), whole) < 1e-12


def test_every_density_of_the_library_is_converted_or_known_not_to_be():
    classes = {getattr(density, name) for name in density.__all__}
    refused = {kind.__name__ for kind in classes - {*_OF_FEATURES, *_OF_BOTH}}
    assert refused == {"CustomDensity", "FlowDensity"}


@pytest.mark.parametrize("p", [1, 20])
@pytest.mark.parametrize(
    "make",
    [GDADensity, GaussianDensity, lambda: KNNDensity(3), KernelDensity, FusedDensity],
    ids=["gda", "gaussian", "knn", "kde", "fused"],
)
def test_one_feature_and_more_than_a_tree_searches(rng, p, make):
    rows = rng.normal(size=(80, p)) * 10.0 ** rng.integers(-3, 3, size=p) + 100.0
    labels = np.arange(80) % 2
    model = make().fit(rows, labels)
    Q = np.concatenate(
        [rows, rows + rng.normal(size=rows.shape), 1e6 * rng.normal(size=rows.shape)]
    )
    assert gap(graph_of(model, rows)(Q), model.score_samples(Q)) < TOLERANCE


@pytest.mark.parametrize("name", ["gda", "gaussian-diag", "knn", "relative"])
def test_overflowing_distances_are_as_in_numpy(name):
    model = DENSITIES[name].fit(X, Y)
    Q = np.array([[1e200, 0, 0, 0], [1e308] * 4, [1e308, -1e308] * 2, [-1e160, 1e160, 1, 1]])
    assert np.array_equal(graph_of(model)(Q), model.score_samples(Q))


def test_weights_of_kernels_and_of_classes_are_kept(rng):
    w = rng.uniform(0.5, 3.0, size=len(X))
    for model in (KernelDensity(0.5), GDADensity(class_weights="empirical")):
        model.fit(X, Y, w)
        assert gap(graph_of(model)(X), model.score_samples(X)) < TOLERANCE


def test_confidence_keeps_what_one_minus_the_largest_loses():
    P = np.array([[1 - 3e-10, 2e-10, 1e-10], [1.0, 0.0, 0.0], [0.4, 0.4, 0.2], [1e-9, 1 - 1e-9, 0]])
    assert gap(runner(confidence, 3)(P), confidence_of(P)) < 1e-12


def test_pixels_outside_their_range_have_no_density_where_python_refuses(rng):
    pixels = rng.integers(0, 256, size=(60, 4)) / 255
    model = make_pipeline(LogitPixels(), GDADensity()).fit(pixels, np.arange(60) % 2)
    run = graph_of(model, pixels)
    assert gap(run(pixels), model.score_samples(pixels)) < TOLERANCE
    assert (
        gap(
            run([[0, 1, 0, 1], [1 + 1e-7, 0, 0, 0]]),
            model.score_samples([[0, 1, 0, 1], [1, 0, 0, 0]]),
        )
        < TOLERANCE
    )
    with pytest.raises(ValueError, match="pixels"):
        model.score_samples([[1.5, 0, 0, 0]])
    assert run([[1.5, 0, 0, 0]]) == -np.inf


@pytest.mark.parametrize("make", [lambda: KNNDensity(3), KernelDensity], ids=["knn", "kde"])
def test_too_many_rows_are_refused_with_their_size(make):
    model = make().fit(X)
    size = X.nbytes / 1e6
    with pytest.raises(ValueError, match=r"keeps 150 training rows of 4 features.*0\.0 MB.*raise"):
        runner(lambda x: log_density(model, Seen(Data(x, X))), 4, max_constant_mb=size * 0.99)
    runner(lambda x: log_density(model, Seen(Data(x, X))), 4, max_constant_mb=size * 1.01)


def test_rows_of_all_parts_count_together():
    model = RelativeDensity(KNNDensity(3), KNNDensity(5)).fit(X)
    with pytest.raises(ValueError, match="max_constant_mb"):
        runner(
            lambda x: log_density(model, Seen(Data(x, X))), 4, max_constant_mb=1.5 * X.nbytes / 1e6
        )


def test_what_cannot_be_exported_is_named_with_what_can():
    with pytest.raises(TypeError, match=r"density CustomDensity cannot.*GDADensity.*KNNDensity"):
        graph_of(CustomDensity(GaussianDensity()).fit(X))
    with pytest.raises(TypeError, match="density CustomDensity cannot"):
        graph_of(RelativeDensity(GDADensity(), CustomDensity(GaussianDensity())).fit(X, Y))


def test_a_fusion_with_a_classifier_needs_one(rng):
    P = rng.dirichlet([1, 1, 1], len(X)) * 0.5 + 0.5 * np.eye(3)[Y]
    model = FusedDensity(random_state=0).fit(X, Y, proba=P)
    with pytest.raises(ValueError, match="export the DIPClassifier"):
        graph_of(model)
    run = runner(lambda x: log_density(model, Seen(Data(x, X), x.graph.tensor(P))), 4)
    assert gap(run(X), model.score_samples(X, P)) < TOLERANCE


def test_a_length_of_rounding_size_is_none():
    model = make_pipeline(Normalizer(), GaussianDensity()).fit(X)
    Q = np.array([1e-14, 1e-15, 1e-16, 0.0])[:, None] * X[:1]
    assert gap(graph_of(model)(Q), model.score_samples(Q)) < TOLERANCE


def test_near_neighbours_far_from_the_mean_are_told_apart(rng):
    # Squared distances of 1e-8 between rows of squared length 1e6: two digits are left of them.
    sides = 1e3 * np.repeat([[1.0], [-1.0]], 30, axis=0)
    rows = sides + 1e-4 * rng.normal(size=(60, 3))
    model = KNNDensity(4).fit(rows)
    Q = rows + 1e-4 * rng.normal(size=rows.shape)
    assert gap(graph_of(model, rows)(Q), model.score_samples(Q)) < TOLERANCE
