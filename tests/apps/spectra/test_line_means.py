"""LineMeans: the windows of the paper, means by a mask, other grids, and what it refuses."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from dipedl.apps.spectra import LineMeans, paper_grid, toy_spectra
from dipedl.apps.spectra.spectra import LINES, PAPER_LINES

#: First and last pixel of the paper's lines on its grid.
PAPER_WINDOWS = [(1565, 1567), (564, 567), (258, 260), (117, 120), (754, 756), (1169, 1171)]


def test_windows_of_the_paper():
    found = LineMeans().fit(np.ones((1, 3000))).windows_
    assert [(first, after - 1) for first, after in found] == PAPER_WINDOWS


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_means_by_a_mask(dtype):
    flux = toy_spectra(30).flux.astype(dtype)
    found = LineMeans().fit_transform(flux)
    assert found.shape == (30, 6)
    assert found.dtype == dtype
    for column, name in enumerate(PAPER_LINES):
        near = np.abs(paper_grid() - LINES[name]) <= 3.0
        np.testing.assert_allclose(found[:, column], flux[:, near].mean(axis=1), rtol=1e-6)


def test_both_ends_of_a_window_count():
    means = LineMeans(np.arange(4000.0, 4020.0), lines=[4010.0, 4000.0], half_width=2.0)
    flux = np.arange(20.0)[None, :]
    np.testing.assert_allclose(means.fit_transform(flux), [[10.0, 1.0]])
    assert means.windows_.tolist() == [[8, 13], [0, 3]]


def test_a_grid_that_is_not_linear():
    grid = np.geomspace(3800, 9200, 3800)
    flux = np.random.default_rng(0).normal(size=(4, 3800))
    means = LineMeans(grid, lines=("Hα", 5006.84), half_width=5.0).fit(flux)
    for column, line in enumerate((6562.81, 5006.84)):
        near = np.abs(grid - line) <= 5.0
        np.testing.assert_allclose(means.transform(flux)[:, column], flux[:, near].mean(axis=1))
    assert list(means.get_feature_names_out()) == ["line_Hα", "line_5006.84"]


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"wavelength": np.linspace(3900, 9000, 2999)}, r"each of the 3000 pixels.*\(2999,\)"),
        ({"wavelength": paper_grid()[::-1]}, "wavelength must be finite and increasing"),
        ({"wavelength": paper_grid() - 2600}, r"none for \['Hα'\] on the grid 1300-6400 Ang"),
        ({"lines": ("Hα", "Hx")}, "lines must be out of .*got 'Hx'"),
        ({"lines": ()}, "lines must have a pixel"),
        ({"half_width": -1.0}, "half_width must be finite and >= 0"),
        ({"half_width": 0.1}, r"within 0\.1 Angstrom, got none for .*larger half_width"),
    ],
)
def test_what_does_not_fit_is_refused(parameters, message):
    with pytest.raises(ValueError, match=message):
        LineMeans(**parameters).fit(np.ones((2, 3000)))


def test_no_grid_for_other_pixels():
    with pytest.raises(ValueError, match=r"wavelength=None means the paper's grid.*resample X"):
        LineMeans().fit(np.ones((2, 3800)))


def test_contract_of_scikit_learn():
    """By hand: its own checks choose widths for which there is no grid."""
    flux = toy_spectra(4).flux
    means = LineMeans(paper_grid(), half_width=4.0)
    with pytest.raises(NotFittedError):
        means.transform(flux)
    assert clone(means.fit(flux)).get_params()["half_width"] == 4.0
    assert means.fit(flux) is means
    assert means.set_output(transform="default").transform(flux).shape == (4, 6)
    with pytest.raises(ValueError, match="expecting 3000 features"):
        means.transform(flux[:, :100])
    with pytest.raises(ValueError, match="row 1, column 0"):
        means.transform(np.where(np.arange(4)[:, None] == 1, np.nan, flux))
