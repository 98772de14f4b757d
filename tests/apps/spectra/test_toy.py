import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl.apps.spectra import paper_grid, toy_spectra


@pytest.fixture(scope="module")
def spectra():
    return toy_spectra(1000)


def test_counts_grid_and_what_is_known(spectra):
    assert spectra.target_names == ("GALAXY", "QSO", "STAR")
    assert np.bincount(spectra.label).tolist() == [450, 250, 300]
    np.testing.assert_array_equal(spectra.wavelength, paper_grid())
    assert np.isfinite(spectra.flux).all() and len(set(spectra.name)) == 1000
    for number, (low, high) in enumerate([(0, 0.4), (0.3, 3), (0, 0)]):
        z = spectra.redshift[spectra.label == number]
        assert low <= z.min() <= z.max() <= high


def test_noise_is_that_of_the_ratio(spectra):
    # neighbours differ by noise alone where a spectrum is smooth, so by sqrt(2) / S/N
    differences = np.diff(spectra.flux.astype(float), axis=1)
    noise = 1.4826 * np.median(np.abs(differences), axis=1) / np.sqrt(2)
    np.testing.assert_allclose(noise * spectra.snr, 1, rtol=0.12)


def test_lines_lie_where_the_redshift_puts_them():
    toys = toy_spectra(1200, random_state=2)
    quasars = toys.select(toys.label == 1)
    line = 2798.8  # Mg II
    at = line * (1 + quasars.redshift)
    quasars = quasars.select((at > 4300) & (at < 8400))
    rest = quasars.wavelength / (1 + quasars.redshift)[:, None]
    left, peak, right = (
        np.mean(quasars.flux, axis=1, where=np.abs(rest - centre) < 15)
        for centre in (line - 140, line, line + 140)
    )
    assert len(quasars) > 100
    assert np.mean(peak > (left + right) / 2) > 0.9


@pytest.mark.parametrize("seed", [0, 1])
def test_classes_separate_but_not_trivially(seed):
    train, test = (toy_spectra(1000, random_state=s) for s in (seed, seed + 50))
    model = make_pipeline(
        PCA(40, random_state=0), StandardScaler(), LogisticRegression(max_iter=500)
    )
    known, asked = train.label < 2, test.label < 2
    score = model.fit(train.flux[known], train.label[known]).score(
        test.flux[asked], test.label[asked]
    )
    assert 0.9 <= score <= 0.99


def test_seed_decides():
    first, again, other = (toy_spectra(30, random_state=s).flux for s in (7, 7, 8))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_one_spectrum_is_enough():
    assert toy_spectra(1).flux.shape == (1, 3000)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"n": 0}, ValueError, "n must be an integer >= 1, got 0"),
        ({"n": 3.0}, TypeError, "n must be an integer >= 1, got 3.0"),
        ({"random_state": -1}, ValueError, "random_state must be an integer >= 0"),
        ({"random_state": None}, TypeError, "random_state must be an integer >= 0"),
    ],
)
def test_bad_input(changes, error, message):
    with pytest.raises(error, match=message):
        toy_spectra(**{"n": 3, **changes})
