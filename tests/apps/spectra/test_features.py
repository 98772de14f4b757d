"""The pipeline from flux to features: against plain loops, in memory, and saved without pickle."""

import tracemalloc

import numpy as np
import pytest
from scipy.signal import savgol_filter
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.naive_bayes import GaussianNB
from test_blocks import naive as block_statistics

from dipedl import DIPClassifier
from dipedl.apps.spectra import paper_grid, spectral_features, toy_spectra
from dipedl.apps.spectra.spectra import LINES, PAPER_LINES
from dipedl.density import GDADensity
from dipedl.io.model_file import describe, load

PRESETS = ["published", "standardised"]
N_TRAIN, COMPONENTS = 150, 6


@pytest.fixture(scope="module")
def flux():
    return toy_spectra(200, random_state=4).flux


def naive(flux, preset):
    """One spectrum after the other, as the paper's code does it."""
    window = {"published": 10, "standardised": 11}[preset]
    smooth = []
    for row in flux.astype(np.float64):
        smooth.append(savgol_filter(row / (np.linalg.norm(row) + 1e-8), window, 3))
    smooth = np.array(smooth, dtype=np.float32)
    solver = {"published": "auto", "standardised": "full"}[preset]
    pca = PCA(COMPONENTS, svd_solver=solver, random_state=0).fit(smooth[:N_TRAIN])
    rows = []
    for row in smooth:
        near = [np.abs(paper_grid() - LINES[name]) <= 3 for name in PAPER_LINES]
        lines = [row[mask].mean(dtype=np.float64) for mask in near]
        rows.append([*pca.transform(row[None, :])[0], *lines, *block_statistics(row, 50)])
    found = np.array(rows)
    if preset == "standardised":
        mean, deviation = found[:N_TRAIN].mean(axis=0), found[:N_TRAIN].std(axis=0)
        found = (found - mean) / np.where(deviation > 0, deviation, 1)
    return found


@pytest.mark.parametrize("preset", PRESETS)
def test_plain_loops(preset, flux):
    pipeline = spectral_features(preset, n_components=COMPONENTS).fit(flux[:N_TRAIN])
    found = pipeline.transform(flux)
    assert found.shape == (200, COMPONENTS + 306)
    assert found.dtype == np.float32
    expected = naive(flux, preset)
    # Unit columns magnify float32's rounding of components near the noise.
    tolerance = {"published": 1e-6, "standardised": 2e-4}[preset]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=tolerance)


@pytest.mark.parametrize("preset", PRESETS)
def test_fit_transform_is_fit_and_transform(preset, flux):
    a, b = (spectral_features(preset, n_components=COMPONENTS) for _ in range(2))
    np.testing.assert_array_equal(
        a.fit_transform(flux[:N_TRAIN]), b.fit(flux[:N_TRAIN]).transform(flux[:N_TRAIN])
    )


def test_published_is_unscaled_and_shifted_standardised_is_not(flux):
    published = spectral_features("published", n_components=COMPONENTS).fit_transform(flux)
    first = COMPONENTS + 6
    variances, places = published[:, first + 50 : first + 100], published[:, first + 100 :]
    assert variances.max() < 1e-2 < 2940 < places[:, :50].max()
    healthy = spectral_features(n_components=COMPONENTS).fit_transform(flux)
    np.testing.assert_allclose(healthy.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(healthy.std(axis=0), 1, rtol=1e-4)


def test_a_constant_column_is_only_centred(flux):
    flux = flux.copy()
    # The highest pixel of the first block is the same in all training spectra.
    flux[:, 30] = 50 * flux.max(axis=1)
    pipeline = spectral_features(n_components=COMPONENTS).fit(flux[:N_TRAIN])
    column = list(pipeline.get_feature_names_out()).index("block_argmax_0")
    found = pipeline.transform(flux)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, column], 0)


def test_only_training_rows_are_learned_from(flux):
    pipeline = spectral_features(n_components=COMPONENTS).fit(flux[:N_TRAIN])
    before = pipeline.transform(flux[:5])
    pipeline.transform(flux[N_TRAIN:] ** 2)
    np.testing.assert_array_equal(pipeline.transform(flux[:5]), before)


def test_float64_flux_gives_the_same_features_in_float32(flux):
    pipeline = spectral_features("published", n_components=COMPONENTS).fit(flux)
    found = pipeline.transform(flux.astype(np.float64))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, pipeline.transform(flux))


def test_names_parameters_and_clones(flux):
    pipeline = spectral_features("published", n_components=COMPONENTS, random_state=5).fit(flux)
    names = pipeline.get_feature_names_out()
    assert len(set(names)) == len(names) == COMPONENTS + 306
    assert list(names[[0, COMPONENTS, COMPONENTS + 6, -1]]) == [
        "pca0",
        "line_Hα",
        "block_mean_0",
        "block_min_49",
    ]
    again = clone(pipeline).set_params(features__pca__n_components=3)
    assert again.get_params()["features__pca__random_state"] == 5
    assert again.fit_transform(flux).shape == (200, 309)
    assert [name for name, _ in spectral_features().steps][-1] == "scaling"
    assert spectral_features().get_params()["features__pca__n_components"] == 500


def test_another_grid(flux):
    grid = paper_grid()[::2]
    with pytest.raises(ValueError, match="give wavelength= the grid of X"):
        spectral_features(n_components=5).fit(flux[:, ::2])
    found = spectral_features(wavelength=grid, n_components=5).fit_transform(flux[:, ::2])
    assert found.shape == (200, 311)


def test_what_is_refused(flux):
    with pytest.raises(ValueError, match=r"preset must be one of .*got 'paper'"):
        spectral_features("paper")
    with pytest.raises(ValueError, match=r"n_components must lie in 1\.\.199.*got 500"):
        spectral_features().fit(flux)
    pipeline = spectral_features(n_components=5).fit(flux)
    empty = flux.copy()
    empty[77] = 0
    with pytest.raises(ValueError, match="energy 0 of row 77"):
        pipeline.transform(empty)


@pytest.mark.parametrize("preset", PRESETS)
def test_saved_without_pickle_and_the_same_to_the_last_bit(preset, flux, tmp_path):
    pytest.importorskip("skops")
    features = spectral_features(preset, wavelength=paper_grid(), n_components=COMPONENTS)
    labels = np.arange(len(flux)) % 2
    path = tmp_path / "model.dipedl"
    # the features are what is saved here: a classifier of the flux that is quick, and few folds
    clf = DIPClassifier(GaussianNB(), GDADensity(), features=features, cv=2).fit(flux, labels)
    clf.save(path)
    assert describe(path)["untrusted_types"] == []
    np.testing.assert_array_equal(load(path).score_samples(flux), clf.score_samples(flux))


@pytest.mark.parametrize("preset", PRESETS)
def test_memory_beyond_the_input_is_two_arrays_of_it(preset):
    flux = np.tile(toy_spectra(100).flux, (20, 1))
    pipeline = spectral_features(preset, n_components=50).fit(flux[:100])
    tracemalloc.start()
    try:
        pipeline.transform(flux)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2.4 * flux.nbytes
