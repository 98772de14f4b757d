"""Features of spectra: each transformer against plain loops, and their pipeline."""

import math
import tracemalloc

import numpy as np
import pytest
from scipy.signal import savgol_filter
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl import DIPClassifier
from dipedl.apps.spectra import (
    BlockStatistics,
    EnergyNormalizer,
    LineMeans,
    PrincipalComponents,
    SavitzkyGolay,
    paper_grid,
    spectral_features,
    toy_spectra,
)
from dipedl.apps.spectra.spectra import LINES, PAPER_LINES
from dipedl.density import GDADensity
from dipedl.io.model_file import describe, load

PRESETS = ["published", "standardised"]
N_TRAIN, COMPONENTS = 150, 6
#: First and last pixel of the paper's lines on its grid.
PAPER_WINDOWS = [(1565, 1567), (564, 567), (258, 260), (117, 120), (754, 756), (1169, 1171)]


@pytest.fixture(scope="module")
def flux():
    return toy_spectra(200, random_state=4).flux


# The checks use one to three columns, so no wider window.
@parametrize_with_checks(
    [BlockStatistics(1), EnergyNormalizer(), PrincipalComponents(1), SavitzkyGolay(1, 0)],
    expected_failed_checks=lambda estimator: (
        {"check_estimators_dtypes": "its integers have rows of zeros, which are refused"}
        if isinstance(estimator, EnergyNormalizer)
        else {}
    ),
)
def test_scikit_learn(estimator, check):
    check(estimator)


def test_contract_of_scikit_learn_of_line_means(flux):
    """By hand: its own checks choose widths for which there is no grid."""
    means = LineMeans(paper_grid(), half_width=4.0)
    with pytest.raises(NotFittedError):
        means.transform(flux)
    assert clone(means.fit(flux)).get_params()["half_width"] == 4.0
    assert means.set_output(transform="default").transform(flux).shape == (200, 6)


def refusal(estimator, *rows):
    """Fit on the first rows, and transform the second if there are any."""
    fitted = estimator.fit(rows[0])
    for others in rows[1:]:
        fitted.transform(others)


ONES, TOYS = np.ones((2, 20)), toy_spectra(3).flux
NAN = np.where(np.arange(3)[:, None] == 1, np.nan, TOYS)
ROWS = np.random.default_rng(0).normal(size=(10, 60))


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        ((BlockStatistics(0), ONES), ValueError, "n_blocks"),
        ((BlockStatistics(2.0), ONES), TypeError, "n_blocks"),
        ((BlockStatistics(50), np.ones((2, 51))), ValueError, "n_blocks=26"),
        ((BlockStatistics(52), np.ones((2, 51))), ValueError, "n_blocks=51"),
        ((LineMeans(np.linspace(3900, 9000, 2999)), TOYS), ValueError, "wavelength"),
        ((LineMeans(paper_grid()[::-1]), TOYS), ValueError, "wavelength"),
        ((LineMeans(), np.ones((2, 3800))), ValueError, "wavelength=None"),
        ((LineMeans(paper_grid() - 2600), TOYS), ValueError, "lines"),
        ((LineMeans(lines=("Hα", "Hx")), TOYS), ValueError, "'Hx'"),
        ((LineMeans(lines=()), TOYS), ValueError, "lines"),
        ((LineMeans(half_width=-1.0), TOYS), ValueError, "half_width"),
        ((LineMeans(half_width=0.1), TOYS), ValueError, "half_width"),
        ((LineMeans(), TOYS, TOYS[:, :100]), ValueError, "3000 features"),
        ((LineMeans(), TOYS, NAN), ValueError, "row 1, column 0"),
        ((SavitzkyGolay(0), ONES), ValueError, "window"),
        ((SavitzkyGolay(9.5), ONES), TypeError, "window"),
        ((SavitzkyGolay(polyorder=-1), ONES), ValueError, "polyorder"),
        ((SavitzkyGolay(polyorder=True), ONES), TypeError, "polyorder"),
        ((SavitzkyGolay(4, 4), ONES), ValueError, "polyorder"),
        ((SavitzkyGolay(22), ONES), ValueError, "minimum of 22"),
        ((SavitzkyGolay(20, centred=True), ONES), ValueError, "minimum of 21"),
        ((SavitzkyGolay(), TOYS, NAN), ValueError, "row 1, column 0"),
        ((PrincipalComponents(2, "auto"), ROWS), ValueError, "svd_solver"),
        *(((PrincipalComponents(n), ROWS), ValueError, "n_components") for n in (0, 10, 61)),
        ((spectral_features(), TOYS), ValueError, "n_components"),
        ((spectral_features(n_components=1), TOYS[:, ::2]), ValueError, "wavelength="),
        ((spectral_features(n_components=1), TOYS, 0 * TOYS), ValueError, "row 0"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(call, error, argument):
    with pytest.raises(error, match=argument):
        refusal(*call)


def test_a_preset_that_is_not_known():
    with pytest.raises(ValueError, match="preset"):
        spectral_features("paper")


# Energy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_energy_row_by_row(flux, dtype):
    # More rows than one slice holds.
    flux = flux.astype(dtype)
    kept = flux.copy()
    found = EnergyNormalizer().fit_transform(flux)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(flux, kept)
    for row, x in zip(found, flux.astype(np.float64), strict=True):
        np.testing.assert_allclose(row, x / (np.linalg.norm(x) + 1e-8), rtol=1e-6)


def test_energy_of_large_and_of_faint_spectra():
    large = np.array([[3e30, 4e30]], dtype=np.float32)
    np.testing.assert_allclose(EnergyNormalizer().fit_transform(large), [[0.6, 0.8]], rtol=1e-6)
    faint = np.array([[3e-8, 4e-8]])
    np.testing.assert_allclose(EnergyNormalizer().fit_transform(faint), faint / 6e-8, rtol=1e-6)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (lambda x: 0 * x, "row 150 of X is not above 1e-08"),
        (lambda x: 1e-17 * x / x.mean(), "row 150 of X is not above 1e-08"),
        (lambda x: 0 * x + 2, "row 150 of X is that of a constant"),
        (lambda x: x - 2 * x.mean(), "row 150 of X must have a positive total flux"),
        (lambda x: np.where(np.arange(len(x)) == 7, np.nan, x), "row 150, column 7"),
        (lambda x: np.where(np.arange(len(x)) == 9, np.inf, x), "row 150, column 9"),
        (lambda x: 1e200 * x, "row 150 of X overflows"),
    ],
)
def test_a_spectrum_without_information_is_named(flux, bad, message):
    flux = flux[:160].astype(np.float64)
    fitted = EnergyNormalizer().fit(flux)
    flux[150] = bad(flux[150])
    for call in (fitted.transform, EnergyNormalizer().fit):
        with pytest.raises(ValueError, match=message):
            call(flux)


# Smoothing


@pytest.mark.parametrize(("window", "polyorder"), [(10, 3), (4, 1), (40, 5)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_smoothing_agrees_with_scipy(flux, window, polyorder, dtype):
    flux = EnergyNormalizer().fit_transform(flux[:100]).astype(dtype)
    found = SavitzkyGolay(window, polyorder).fit_transform(flux)
    assert found.dtype == dtype
    tolerance = {np.float32: 1e-6, np.float64: 1e-12}[dtype]
    expected = [savgol_filter(row, window, polyorder) for row in flux.astype(np.float64)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


def test_even_window_shifts_all_but_the_ends_by_half_a_pixel():
    t = np.arange(60.0)
    cubic = np.poly1d([2e-4, -0.01, 0.3, 1.0])
    found = SavitzkyGolay().fit_transform(cubic(t)[None, :])[0]
    np.testing.assert_allclose(found[5:-5], cubic(t + 0.5)[5:-5], rtol=1e-12)
    ends = np.r_[0:5, 55:60]
    np.testing.assert_allclose(found[ends], cubic(t)[ends], rtol=1e-12)


@pytest.mark.parametrize(("window", "used"), [(10, 11), (11, 11), (4, 5)])
def test_centred_leaves_cubics_where_they_are_and_is_symmetric(window, used):
    t = np.arange(60.0)
    cubic = np.poly1d([2e-4, -0.01, 0.3, 1.0])(t)[None, :]
    smoothing = SavitzkyGolay(window, centred=True).fit(cubic)
    assert smoothing.window_ == used
    np.testing.assert_allclose(smoothing.transform(cubic), cubic, rtol=1e-12)
    # The mirrored spectrum gives the mirrored answer: no shift of any signal.
    noise = np.random.default_rng(0).normal(size=(3, 60))
    np.testing.assert_allclose(
        smoothing.transform(noise[:, ::-1])[:, ::-1], smoothing.transform(noise), atol=1e-12
    )
    odd = SavitzkyGolay(used).fit(cubic)
    np.testing.assert_array_equal(smoothing.transform(noise), odd.transform(noise))


# Principal components


@pytest.fixture
def rows(rng):
    return rng.normal(size=(300, 60)) * np.linspace(3, 1, 60) + 5


@pytest.mark.parametrize(
    ("solver", "n", "name"),
    [
        ("exact", 30, "full"),
        ("exact", 31, "covariance_eigh"),
        ("exact", 300, "covariance_eigh"),
        ("randomized", 300, "randomized"),
    ],
)
def test_components_are_scikit_learns(solver, n, name, rows):
    rows = rows[:n]
    ours = PrincipalComponents(20, solver, random_state=3).fit(rows)
    theirs = PCA(20, svd_solver=name, random_state=3).fit(rows)
    for attribute in ("components_", "explained_variance_", "explained_variance_ratio_"):
        np.testing.assert_array_equal(getattr(ours, attribute), getattr(theirs, attribute))
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-12)
    # Not so scikit-learn's, by which the trained rows would get other features.
    again = PrincipalComponents(20, solver, random_state=3)
    np.testing.assert_array_equal(again.fit_transform(rows), again.transform(rows))
    assert again.components_.flags.c_contiguous


def test_exact_components_need_no_seed(rows):
    a, b = (PrincipalComponents(20, random_state=seed).fit(rows) for seed in (0, 1))
    np.testing.assert_array_equal(a.components_, b.components_)
    rough = [PrincipalComponents(20, "randomized", s).fit(rows).components_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(rough[0], rough[1])
    assert np.abs(rough[0] - rough[2]).max() > 0
    assert PrincipalComponents(9).fit(rows[:10]).components_.shape == (9, 60)


# Lines


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lines_are_means_by_a_mask(flux, dtype):
    flux = flux[:30].astype(dtype)
    means = LineMeans()
    found = means.fit_transform(flux)
    assert found.shape == (30, 6) and found.dtype == dtype
    assert [(first, after - 1) for first, after in means.windows_] == PAPER_WINDOWS
    for column, name in enumerate(PAPER_LINES):
        near = np.abs(paper_grid() - LINES[name]) <= 3.0
        np.testing.assert_allclose(found[:, column], flux[:, near].mean(axis=1), rtol=1e-6)


def test_both_ends_of_a_window_count():
    means = LineMeans(np.arange(4000.0, 4020.0), lines=[4010.0, 4000.0], half_width=2.0)
    np.testing.assert_allclose(means.fit_transform(np.arange(20.0)[None, :]), [[10.0, 1.0]])
    assert means.windows_.tolist() == [[8, 13], [0, 3]]


def test_lines_of_a_grid_that_is_not_linear():
    grid = np.geomspace(3800, 9200, 3800)
    flux = np.random.default_rng(0).normal(size=(4, 3800))
    means = LineMeans(grid, lines=("Hα", 5006.84), half_width=5.0).fit(flux)
    for column, line in enumerate((6562.81, 5006.84)):
        near = np.abs(grid - line) <= 5.0
        np.testing.assert_allclose(means.transform(flux)[:, column], flux[:, near].mean(axis=1))
    assert list(means.get_feature_names_out()) == ["line_Hα", "line_5006.84"]


# Blocks


def block_statistics(row, n_blocks):
    size = math.ceil(len(row) / n_blocks)
    blocks = [row[i * size : (i + 1) * size].astype(np.float64) for i in range(n_blocks)]
    starts = [i * size for i in range(n_blocks)]
    return np.concatenate(
        [
            [b.mean() for b in blocks],
            [b.var() for b in blocks],
            [s + b.argmax() for s, b in zip(starts, blocks, strict=True)],
            [s + b.argmin() for s, b in zip(starts, blocks, strict=True)],
            [b.max() for b in blocks],
            [b.min() for b in blocks],
        ]
    )


@pytest.mark.parametrize(("pixels", "n_blocks"), [(3000, 50), (3000, 1), (2999, 50), (103, 7)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_are_plain_loops(flux, pixels, n_blocks, dtype):
    flux = EnergyNormalizer().fit_transform(flux[:100])[:, :pixels].astype(dtype)
    found = BlockStatistics(n_blocks).fit_transform(flux)
    assert found.shape == (100, 6 * n_blocks) and found.dtype == dtype
    expected = [block_statistics(row, n_blocks) for row in flux]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_blocks_in_the_order_of_the_paper():
    blocks = BlockStatistics().fit(np.ones((1, 3000)))
    names = blocks.get_feature_names_out()
    assert len(names) == 300
    statistics = ["mean", "variance", "argmax", "argmin", "max", "min"]
    assert list(names[::50]) == [f"block_{s}_0" for s in statistics]
    flux = np.zeros((1, 3000))
    flux[0, 2999], flux[0, 60] = 6.0, -3.0
    found = dict(zip(names, blocks.transform(flux)[0], strict=True))
    assert (found["block_argmax_49"], found["block_max_49"]) == (2999, 6)
    assert (found["block_argmin_1"], found["block_min_1"]) == (60, -3)
    # Of equal pixels the first counts; the variance divides by the 60 pixels.
    assert (found["block_argmin_49"], found["block_argmax_1"]) == (2940, 61)
    assert found["block_variance_49"] == pytest.approx(36 * 59 / 60**2)


def test_variance_far_below_the_resolution_of_squares_in_float32():
    noise = np.random.default_rng(0).normal(0, 1e-5, (20, 600)).astype(np.float32)
    flux = np.float32(0.02) + noise
    found = BlockStatistics(10).fit_transform(flux)[:, 10:20]
    expected = flux.astype(np.float64).reshape(20, 10, 60).var(axis=2)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


# The pipeline


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
    assert found.shape == (200, COMPONENTS + 306) and found.dtype == np.float32
    # Unit columns magnify float32's rounding of components near the noise.
    tolerance = {"published": 1e-6, "standardised": 2e-4}[preset]
    np.testing.assert_allclose(found, naive(flux, preset), rtol=1e-6, atol=tolerance)
    again = spectral_features(preset, n_components=COMPONENTS).fit_transform(flux[:N_TRAIN])
    np.testing.assert_array_equal(again, pipeline.transform(flux[:N_TRAIN]))


def test_published_is_unscaled_and_standardised_is_not(flux):
    pipeline = spectral_features("published", n_components=COMPONENTS)
    published = pipeline.fit_transform(flux)
    first = COMPONENTS + 6
    variances, places = published[:, first + 50 : first + 100], published[:, first + 100 :]
    assert variances.max() < 1e-2 < 2940 < places[:, :50].max()
    healthy = spectral_features(n_components=COMPONENTS).fit_transform(flux)
    np.testing.assert_allclose(healthy.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(healthy.std(axis=0), 1, rtol=1e-4)
    of_float64 = pipeline.transform(flux.astype(np.float64))
    assert of_float64.dtype == np.float32
    np.testing.assert_array_equal(of_float64, published)


def test_a_constant_column_is_only_centred(flux):
    flux = flux.copy()
    # The highest pixel of the first block is the same in all training spectra.
    flux[:, 30] = 50 * flux.max(axis=1)
    pipeline = spectral_features(n_components=COMPONENTS).fit(flux[:N_TRAIN])
    column = list(pipeline.get_feature_names_out()).index("block_argmax_0")
    found = pipeline.transform(flux)
    assert np.isfinite(found).all()
    np.testing.assert_array_equal(found[:, column], 0)


def test_names_parameters_and_clones(flux):
    pipeline = spectral_features("published", n_components=COMPONENTS, random_state=5).fit(flux)
    names = pipeline.get_feature_names_out()
    assert len(set(names)) == len(names) == COMPONENTS + 306
    some = ["pca0", "line_Hα", "block_mean_0", "block_min_49"]
    assert list(names[[0, COMPONENTS, COMPONENTS + 6, -1]]) == some
    again = clone(pipeline).set_params(features__pca__n_components=3)
    assert again.get_params()["features__pca__random_state"] == 5
    assert again.fit_transform(flux).shape == (200, 309)
    assert [name for name, _ in spectral_features().steps][-1] == "scaling"
    assert spectral_features().get_params()["features__pca__n_components"] == 500
    other = spectral_features(wavelength=paper_grid()[::2], n_components=5)
    assert other.fit_transform(flux[:, ::2]).shape == (200, 311)


@pytest.mark.parametrize("preset", PRESETS)
def test_saved_without_pickle_and_the_same_to_the_last_bit(preset, flux, tmp_path):
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
