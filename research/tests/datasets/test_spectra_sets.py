import io

import numpy as np
import pytest
from small_spectra import small_ingredients

from dipedl_bench.datasets import (
    lamost_spectra,
    real_spectra,
    semi_real_spectra,
    supernova_spectra,
)
from fits_writers import write_paper

P = 60
WAVELENGTH = np.linspace(3900.0, 9000.0, P)


def npz(**content):
    stream = io.BytesIO()
    np.savez(stream, **content)
    return stream.getvalue()


def ingredients():
    shape = np.full((4, P), 2, np.float32)
    shape[:, P // 2 :] = 1
    return small_ingredients(P) | {"noise_shape": shape}


def observed():
    """Seven rows: two of one object, one of low S/N, one of low coverage, a library star."""
    flux = np.tile(np.linspace(1, 2, P, dtype=np.float32), (7, 1)) * 1e-15
    flux[0, :3], flux[0, -2:], flux[1, 30] = np.nan, np.nan, np.nan
    return {
        "flux": flux,
        "wavelength": WAVELENGTH,
        "label": np.array(["QSO", "STAR", "QSO", "GALAXY", "GALAXY", "QSO", "STAR"]),
        "z": np.array([2.5, 0, 2.5, 0.1, 0.2, 1.5, 0]),
        "key": np.array(list("abcdefg")),
        "snr": np.array([9, np.nan, 30, 4, 3.9, 20, 50], np.float32),
        "coverage": np.array([0.99, 1, 1, 1, 1, 0.985, 1], np.float32),
        "group": np.array([7, 3, 7, 1, 2, 5, 0]),
    }


def supernovae():
    flux = np.tile(np.linspace(3, 1, P, dtype=np.float32), (400, 1)) * 5e-16
    flux[0, :2] = np.nan
    coverage = np.r_[np.full(300, 1.0), np.full(100, 0.9)].astype(np.float32)
    names = np.array([f"sn{i // 3}.p{i % 3}.dat" for i in range(400)])
    return {"flux": flux, "wavelength": WAVELENGTH, "key": names, "coverage": coverage}


@pytest.fixture
def folder(put):
    for name, content in (
        ("sim_ingredients", ingredients()),
        ("real_spectra", observed()),
        ("ood_supernovae", supernovae()),
    ):
        put(f"spectra/{name}.npz", npz(**content))


@pytest.mark.usefixtures("folder")
def test_observed_rows_are_chosen_and_filled():
    spectra = real_spectra()
    assert spectra.name.tolist() == ["a", "b", "d", "g"]
    assert spectra.label.tolist() == [1, 2, 0, 2]
    assert spectra.group.tolist() == [7, 3, 1, 0]
    assert np.isnan(spectra.snr[1]) and spectra.redshift[0] == 2.5
    assert np.flatnonzero(spectra.mask[0]).tolist() == [0, 1, 2, P - 2, P - 1]
    assert np.flatnonzero(spectra.mask[1]).tolist() == [30] and not spectra.mask[2:].any()
    line = spectra.flux[2]  # all rows are one straight line where they were observed
    np.testing.assert_allclose(spectra.flux[1], line, rtol=1e-6)
    np.testing.assert_array_equal(spectra.flux[0, :3], line[3])
    np.testing.assert_array_equal(spectra.flux[0, -2:], line[-3])
    np.testing.assert_allclose(np.median(spectra.flux, axis=1), 1, rtol=1e-6)


@pytest.mark.usefixtures("folder")
def test_supernovae_get_noise_of_the_shape_and_ratio():
    spectra = supernova_spectra([10.0, 40.0], random_state=1)
    assert len(spectra) == 300 and spectra.label is None
    assert set(spectra.snr) == {10.0, 40.0} and 100 < np.sum(spectra.snr == 10) < 200
    template = np.linspace(3, 1, P) / 2
    noise = (spectra.flux[1:] - template) * spectra.snr[1:, None]
    assert noise[:, : P // 2].std() == pytest.approx(2, rel=0.03)
    assert noise[:, P // 2 :].std() == pytest.approx(1, rel=0.03)
    np.testing.assert_array_equal(spectra.group == spectra.group[4], np.arange(300) // 3 == 1)
    assert np.flatnonzero(spectra.mask.any(axis=1)).tolist() == [0]
    assert np.flatnonzero(spectra.mask[0]).tolist() == [0, 1]
    again = supernova_spectra([10.0, 40.0], random_state=1)
    np.testing.assert_array_equal(spectra.flux, again.flux)


@pytest.mark.parametrize("load", [semi_real_spectra, real_spectra, lambda: supernova_spectra(9.0)])
def test_files_cannot_be_downloaded(load):
    with pytest.raises(FileNotFoundError, match=r"DIPEDL_DATA, .* no official mirror"):
        load()


def test_the_papers_files_in_the_order_of_files_and_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("DIPEDL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"has none; put train_data_01\.fits .*dropbox"):
        lamost_spectra()
    (tmp_path / "lamost").mkdir()
    first, second = (tmp_path / "lamost" / f"train_data_0{i}.fits" for i in (1, 2))
    rng = np.random.default_rng(0)
    flux = rng.normal(1, 0.1, (9, 3000)).astype(np.float32)
    write_paper(first, flux[:5], np.array([0, 0, 1, 1, 0]))
    write_paper(second, flux[5:], np.full(4, 2))
    spectra = lamost_spectra()
    np.testing.assert_array_equal(spectra.flux, flux)
    assert spectra.label.tolist() == [0, 0, 1, 1, 0, 2, 2, 2, 2]
    first.write_bytes(first.read_bytes()[:30_000])
    with pytest.warns(UserWarning, match=r"spectra are left out, .*train_data_01\.fits"):
        assert len(lamost_spectra()) == 4


@pytest.mark.data
@pytest.mark.usefixtures("full_dir")
def test_the_real_files():
    spectra = real_spectra()
    assert np.bincount(spectra.label).tolist() == [52, 161, 427]
    assert len(set(spectra.group)) == 640 and np.isfinite(spectra.flux).all()
    found = supernova_spectra(20.0)
    assert len(found) == 224 and np.isfinite(found.flux).all()
    assert len(set(found.group)) == 60
    scarce = semi_real_spectra(1000, mix={"GALAXY": 34, "QSO": 10, "STAR": 956})
    assert np.bincount(scarce.label).tolist() == [34, 10, 956]
