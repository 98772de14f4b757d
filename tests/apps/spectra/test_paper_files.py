import numpy as np
import pytest

pytest.importorskip("astropy")

from dipedl.apps.spectra import files, paper_grid, read_paper_files
from fits_writers import write_paper, write_sdss


def fluxes(n, seed=0):
    return np.random.default_rng(seed).normal(100, 10, (n, 3000))


@pytest.fixture
def folder(tmp_path):
    """Three files, 3 + 2 + 4 spectra, whose order by letters is not that of their numbers."""
    write_paper(tmp_path / "train_data_01.fits", fluxes(3, 1), [0, 1, 2], [11, 12, 13])
    write_paper(tmp_path / "train_data_2.fits", fluxes(2, 2), [2, 2], [21, 22])
    write_paper(tmp_path / "train_data_10.fits", fluxes(4, 3), [2, 0, 2, 2], [31, 32, 33, 34])
    return tmp_path


def test_all_files_in_order(folder, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 3)  # the last file takes two
    spectra = read_paper_files(folder)
    np.testing.assert_array_equal(
        spectra.flux, np.vstack([fluxes(3, 1), fluxes(2, 2), fluxes(4, 3)]).astype(np.float32)
    )
    np.testing.assert_array_equal(spectra.label, [0, 1, 2, 2, 2, 2, 0, 2, 2])
    np.testing.assert_array_equal(spectra.group, [11, 12, 13, 21, 22, 31, 32, 33, 34])
    assert spectra.name.tolist()[:2] == ["11", "12"]
    assert spectra.target_names == ("GALAXY", "QSO", "STAR")
    np.testing.assert_array_equal(spectra.wavelength, paper_grid())
    assert spectra.flux.dtype == np.float32 and spectra.mask is None
    assert spectra.failures == ()


def test_compressed_files_and_lists_of_them(folder, tmp_path):
    write_paper(tmp_path / "b.fits.gz", fluxes(2, 5), [1, 0])
    spectra = read_paper_files([tmp_path / "b.fits.gz", tmp_path / "train_data_2.fits"])
    np.testing.assert_array_equal(spectra.label, [1, 0, 2, 2])
    np.testing.assert_array_equal(spectra.flux[1], fluxes(2, 5)[1].astype(np.float32))


def test_a_few_missing_pixels_are_interpolated_and_marked(tmp_path):
    flux = np.tile(np.linspace(1, 2, 3000), (3, 1))
    broken = flux.copy()
    broken[1, 700:720] = np.nan
    broken[1, 0] = np.inf
    path = write_paper(tmp_path / "a.fits", broken, [0, 1, 2])
    spectra = read_paper_files(path)
    np.testing.assert_allclose(spectra.flux[:, 1:], flux[:, 1:], rtol=1e-6)
    assert spectra.flux[1, 0] == spectra.flux[1, 1]
    assert spectra.mask.sum(axis=1).tolist() == [0, 21, 0]


def test_bad_rows_are_listed_and_the_others_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_CHUNK", 4)
    flux = fluxes(10)
    flux[0] = np.nan
    flux[3] = 7.0
    flux[4] = 0.0
    flux[5, 400:800] = np.nan
    flux[6, 3] = np.nan
    flux[6, 4:] = 1.0
    flux[6, :3] = 1.0
    flux[9] *= -1
    path = write_paper(tmp_path / "bad.fits", flux, [0, 1, 2, 0, 1, 2, 0, 7, -1, 1])
    other = write_paper(tmp_path / "good.fits", fluxes(1, 8), [1])
    spectra = read_paper_files(tmp_path)
    np.testing.assert_array_equal(
        spectra.flux, np.vstack([fluxes(10)[1:3], fluxes(1, 8)]).astype(np.float32)
    )
    assert spectra.label.tolist() == [1, 2, 1]
    assert [(f.file, f.row) for f in spectra.failures] == [
        (str(path), row) for row in (0, 3, 4, 5, 6, 7, 8, 9)
    ]
    reasons = [f.reason for f in spectra.failures]
    assert reasons[0].startswith("100% of its pixels are NaN")
    assert reasons[1] == reasons[2] == reasons[4] == "it is constant"
    assert reasons[3].startswith("13% of its pixels are NaN")
    assert reasons[5].startswith("its label is 7; known are 0, 1 and 2")
    assert reasons[7].startswith("its total flux is not positive: -")
    with pytest.raises(ValueError, match=r"bad\.fits, row 0: 100% of its pixels are NaN"):
        read_paper_files([other, path], on_error="raise")


def test_bad_files_are_listed_and_the_others_kept(folder):
    write_paper(folder / "a.fits", fluxes(2)[:, :2999], [0, 1])
    write_paper(folder / "b.fits", fluxes(2), [0, 1], drop=("label",))
    write_paper(folder / "c.fits", fluxes(3), [0, 1])
    write_sdss(folder / "d.fits")
    (folder / "e.fits").write_bytes(b"no FITS file at all")
    whole = (folder / "train_data_10.fits").read_bytes()
    (folder / "f.fits").write_bytes(whole[: len(whole) // 2])
    from astropy.io import fits

    fits.PrimaryHDU(fluxes(2)).writeto(folder / "g.fits")
    spectra = read_paper_files(folder)
    assert len(spectra) == 9
    found = {f.file[-6:]: f.reason for f in spectra.failures}
    assert "an image of n rows and 3000 pixels, got shape (2, 2999)" in found["a.fits"]
    assert "must have the columns objid and label, got ['objid']" in found["b.fits"]
    assert "3 spectra and 2 labels" in found["c.fits"]
    assert "got shape ()" in found["d.fits"] and "read_spectra" in found["d.fits"]
    assert "damaged, or no FITS file" in found["e.fits"]
    assert "damaged, or no FITS file" in found["f.fits"]
    assert "second HDU must be a table" in found["g.fits"]
    assert all(f.row is None for f in spectra.failures)


def test_objids_that_are_no_numbers(folder):
    from astropy.io import fits

    columns = [
        fits.Column("objid", "4A", array=["o1", "o2"]),
        fits.Column("label", "K", array=[0, 1]),
    ]
    hdus = [fits.PrimaryHDU(fluxes(2)), fits.BinTableHDU.from_columns(columns)]
    fits.HDUList(hdus).writeto(folder / "a.fits")
    spectra = read_paper_files(folder)
    assert len(spectra) == 9
    assert spectra.failures[0].reason == "its column objid must hold numbers, got ['o1']"


def test_damage_found_late_leaves_no_half_of_a_file(tmp_path, monkeypatch):
    """A file whose fluxes break off after its headers were read counts as unusable as a whole."""
    write_paper(tmp_path / "a.fits", fluxes(5), [0, 1, 2, 0, 1])
    write_paper(tmp_path / "b.fits", fluxes(3, 1), [2, 2, 2])
    monkeypatch.setattr(files, "_CHUNK", 2)
    reasons, calls = files._reasons, []

    def failing(*chunk):
        calls.append(chunk)
        if len(calls) == 2:
            raise OSError("I/O error")
        return reasons(*chunk)

    monkeypatch.setattr(files, "_reasons", failing)
    spectra = read_paper_files(tmp_path)
    np.testing.assert_array_equal(spectra.flux, fluxes(3, 1).astype(np.float32))
    assert "I/O error" in spectra.failures[0].reason and spectra.failures[0].row is None


def test_what_cannot_be_read_at_all(tmp_path):
    with pytest.raises(FileNotFoundError, match="no FITS file"):
        read_paper_files(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"no file or folder '.*nowhere'"):
        read_paper_files(tmp_path / "nowhere")
    write_sdss(tmp_path / "one.fits")
    with pytest.raises(ValueError, match=r"none does: .*one\.fits: its first HDU must be an image"):
        read_paper_files(tmp_path)
    with pytest.raises(ValueError, match="on_error must be one of"):
        read_paper_files(tmp_path, on_error="ignore")
