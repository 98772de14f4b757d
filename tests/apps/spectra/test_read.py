import os
import sys

import numpy as np
import pytest

pytest.importorskip("astropy")

from astropy.io import fits

from dipedl.apps.spectra import paper_grid, read_spectra, read_spectrum
from fits_writers import (
    LAMOST_GRID,
    SDSS_GRID,
    shape_of,
    write_lamost_new,
    write_lamost_old,
    write_paper,
    write_plate,
    write_sdss,
    write_spspec,
)

WRITERS = {"sdss": write_sdss, "lamost old": write_lamost_old, "lamost new": write_lamost_new}
GRIDS = {"sdss": SDSS_GRID, "lamost old": LAMOST_GRID, "lamost new": LAMOST_GRID}
LAYOUTS = sorted(WRITERS)
#: What each writer says of its spectrum: label, redshift, S/N.
FACTS = {"sdss": (1, 2.0, 12.5), "lamost old": (2, 1e-4, 30.0), "lamost new": (0, 0.1, 30.0)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("ending", [".fits", ".fits.gz"])
def test_one_spectrum_as_its_file_has_it(tmp_path, layout, ending):
    grid = GRIDS[layout]
    flux, ivar = np.random.default_rng(0).normal(20, 3, len(grid)), np.full(len(grid), 0.25)
    path = WRITERS[layout](tmp_path / f"spec-a.b-1{ending}", flux=flux, ivar=ivar)
    one = read_spectrum(path)
    np.testing.assert_allclose(one.wavelength, grid, rtol=3e-7)  # float32 in the file
    np.testing.assert_array_equal(one.flux[0], flux.astype(np.float32))
    np.testing.assert_array_equal(one.ivar[0], ivar.astype(np.float32))
    assert not one.mask.any()
    label, z, snr = FACTS[layout]
    assert (one.label[0], one.snr[0], one.name[0]) == (label, snr, "spec-a.b-1")
    assert one.redshift[0] == pytest.approx(z, rel=1e-6)
    assert one.target_names == ("GALAXY", "QSO", "STAR")


def test_old_lamost_files_without_coefficients_have_their_wavelengths_in_a_row(tmp_path):
    one = read_spectrum(write_lamost_old(tmp_path / "a.fits", coefficients=False))
    np.testing.assert_allclose(one.wavelength, LAMOST_GRID, rtol=1e-7)


@pytest.mark.parametrize("n_rows", [4, 5])
def test_spectra_of_the_first_sdss_releases(tmp_path, n_rows):
    error = np.full(len(SDSS_GRID), 0.5)
    error[:10] = 0  # an error of 0 says that the pixel is bad
    one = read_spectrum(write_spspec(tmp_path / "spSpec-1.fit", error=error, n_rows=n_rows))
    np.testing.assert_allclose(one.wavelength, SDSS_GRID)
    assert one.mask[0].nonzero()[0].tolist() == list(range(10))
    assert one.ivar[0, 9] == 0 and one.ivar[0, 10] == 4
    assert (one.label[0], one.redshift[0], one.snr[0]) == (1, 1.5, 9.0)


def write_sdss_with_wavelength(path, **arguments):
    """A spec file to which the wavelengths were added as a column."""
    return write_sdss(path, more={"wavelength": SDSS_GRID}, **arguments)


def write_sdss_in_wavelength(path, **arguments):
    """A spec file whose logarithms of wavelengths were replaced."""
    return write_sdss(path, more={"WAVELENGTH": SDSS_GRID}, drop=("loglam",), **arguments)


SDSS_WRITERS = [write_sdss, write_spspec, write_sdss_with_wavelength, write_sdss_in_wavelength]


@pytest.mark.parametrize("write", SDSS_WRITERS)
def test_bits_of_sdss_masks_mean_the_same_in_every_layout(tmp_path, write):
    bits = np.zeros(len(SDSS_GRID), int)
    bits[100:104] = 1 << np.array([18, 22, 23, 24])  # FULLREJECT, NOSKY, BRIGHTSKY, NODATA
    bits[200:206] = 1 << np.array([0, 10, 16, 17, 19, 27])  # these inform
    bits[300] = 1 << 23 | 1 << 19
    one = read_spectrum(write(tmp_path / "a.fits", and_mask=bits))
    assert one.mask[0].nonzero()[0].tolist() == [100, 101, 102, 103, 300]
    np.testing.assert_allclose(one.wavelength, SDSS_GRID, rtol=3e-7)
    assert one.label[0] == 1 and one.redshift[0] > 0


@pytest.mark.parametrize(("n", "told"), [(1, "1 spectrum"), (2, "2 spectra"), (640, "640 spectra")])
@pytest.mark.parametrize("telescope", ["SDSS 2.5-M", "LAMOST"])
def test_the_spectra_of_a_plate_are_not_read_as_one(tmp_path, n, told, telescope):
    path = write_plate(tmp_path / "spPlate-0266-51602.fits", n, telescope)
    with pytest.raises(ValueError, match=f"spPlate-0266-51602.fits: it holds {told},"):
        read_spectrum(path)
    write_sdss(tmp_path / "spec-1.fits")
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == ["spec-1"]
    assert [f"holds {told}," in failure.reason for failure in spectra.failures] == [True]


def test_a_table_of_many_spectra_is_not_read_as_one(tmp_path):
    n = len(LAMOST_GRID)
    columns = {"FLUX": shape_of(LAMOST_GRID), "IVAR": np.ones(n), "WAVELENGTH": LAMOST_GRID}
    table = fits.BinTableHDU.from_columns(
        [fits.Column(name, f"{n}E", array=np.tile(row, (3, 1))) for name, row in columns.items()]
    )
    table.writeto(tmp_path / "many.fits")
    with pytest.raises(ValueError, match=r"many.fits: it holds 3 spectra"):
        read_spectrum(tmp_path / "many.fits")


def test_an_image_of_other_rows_than_wavelengths_is_refused(tmp_path):
    """The rows of SDSS are others than those of LAMOST, and nothing but the header says so."""
    path = write_spspec(tmp_path / "a.fit", telescope="")
    with pytest.raises(ValueError, match=r"a.fit: the third row of its image must be wavelengths"):
        read_spectrum(path)


def test_an_empty_table_of_redshifts_says_nothing(tmp_path):
    whole = read_spectrum(write_sdss(tmp_path / "a.fits"))
    one = read_spectrum(write_sdss(tmp_path / "b.fits", facts=False))
    np.testing.assert_array_equal(one.flux, whole.flux)
    assert one.label[0] == -1 and np.isnan(one.redshift[0])
    assert one.snr[0] == pytest.approx(2 * np.median(shape_of(SDSS_GRID)))


@pytest.mark.parametrize("name", ["COADD", "PRIMARY"])
def test_an_empty_spectrum_is_refused_with_its_reason(tmp_path, name):
    if name == "COADD":
        write_sdss(tmp_path / "a.fits", wavelength=SDSS_GRID[:0])
    else:
        fits.PrimaryHDU(np.zeros((5, 1), np.float32)).writeto(tmp_path / "a.fits")
    with pytest.raises(ValueError, match=r"a.fits: flux, ivar, wavelength and mask must have"):
        read_spectrum(tmp_path / "a.fits")


def test_what_makes_a_pixel_unusable(tmp_path):
    n = len(SDSS_GRID)
    flux, ivar, bits = shape_of(SDSS_GRID), np.full(n, 4.0), np.zeros(n, int)
    flux[10], flux[11], ivar[12], ivar[13], ivar[14] = np.nan, np.inf, 0, -1, np.nan
    for i, bit in enumerate((18, 22, 23, 24)):  # FULLREJECT, NOSKY, BRIGHTSKY, NODATA
        bits[20 + i] = 1 << bit
    bits[30:36] = 1 << np.array([0, 10, 16, 17, 19, 27])  # these inform
    one = read_spectrum(write_sdss(tmp_path / "a.fits", flux=flux, ivar=ivar, and_mask=bits))
    assert one.mask[0].nonzero()[0].tolist() == [10, 11, 12, 13, 14, 20, 21, 22, 23]
    assert (one.ivar[0][one.mask[0]] == 0).all()
    # what is no number is interpolated
    np.testing.assert_allclose(one.flux[0, 10:12], shape_of(SDSS_GRID)[10:12], rtol=1e-5)

    bits = np.zeros(len(LAMOST_GRID))
    bits[[5, 6]] = 1, 32
    for write in (write_lamost_new, write_lamost_old):
        one = read_spectrum(write(tmp_path / "b.fits", and_mask=bits))
        assert one.mask[0].nonzero()[0].tolist() == [5, 6]


def test_without_a_signal_to_noise_ratio_in_the_headers_it_is_measured(tmp_path):
    n = len(SDSS_GRID)
    flux, ivar = np.full(n, 6.0), np.full(n, 4.0)
    flux[0], ivar[: n // 2 + 100] = 5.0, 0
    path = write_sdss(tmp_path / "a.fits", flux=flux + np.r_[np.zeros(n - 1), 1], ivar=ivar, snr=-1)
    assert read_spectrum(path).snr[0] == 12
    path = write_sdss(tmp_path / "b.fits", drop=("SN_MEDIAN_ALL",))
    assert read_spectrum(path).snr[0] == 3  # of u, g, r, i, z the r band
    path = write_lamost_old(tmp_path / "c.fits", snr=-9999)
    assert read_spectrum(path).snr[0] == pytest.approx(2 * np.median(shape_of(LAMOST_GRID)))


@pytest.mark.parametrize("kind", ["Unknown", "", "Non"])
def test_another_class_is_no_label(tmp_path, kind):
    assert read_spectrum(write_lamost_new(tmp_path / "a.fits", kind=kind)).label[0] == -1


def test_what_headers_lack_is_unknown(tmp_path):
    one = read_spectrum(write_sdss(tmp_path / "a.fits", drop=("SPECOBJ",)))
    assert one.label[0] == -1 and np.isnan(one.redshift[0])
    assert one.snr[0] == pytest.approx(2 * np.median(shape_of(SDSS_GRID)))
    one = read_spectrum(write_lamost_new(tmp_path / "b.fits", z=-9999.0))
    assert np.isnan(one.redshift[0])


# many


def test_mixed_layouts_on_one_grid(tmp_path):
    """Grids that differ give the same smooth spectrum on the common one."""
    write_sdss(tmp_path / "spec-10.fits.gz")
    (tmp_path / "plate").mkdir()
    write_lamost_new(tmp_path / "plate" / "spec-3.fits")
    write_lamost_old(tmp_path / "spec-9.fits")
    (tmp_path / "._spec-9.fits").write_bytes(b"what macOS leaves behind")
    (tmp_path / "notes.txt").write_text("no spectrum")
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == ["spec-3", "spec-9", "spec-10"]  # in order of paths
    assert spectra.label.tolist() == [0, 2, 1]
    assert spectra.snr.tolist() == [30, 30, 12.5]
    np.testing.assert_array_equal(spectra.wavelength, paper_grid())
    wanted = np.tile(shape_of(paper_grid()), (3, 1))
    np.testing.assert_allclose(spectra.flux, wanted, rtol=1e-3)
    assert not spectra.mask.any() and spectra.failures == ()
    assert spectra.flux.dtype == spectra.ivar.dtype == np.float32
    # Pixels of 1.70 A average old ones that are 0.9 A wide in the blue and 2.1 A in the red.
    assert (spectra.ivar >= 4 * (1 - 1e-6)).all()
    assert spectra.ivar[0, :100].mean() > 1.2 * spectra.ivar[0, -100:].mean()


def test_another_grid(tmp_path):
    grid = np.linspace(5000, 7000, 40)
    spectra = read_spectra(write_sdss(tmp_path / "a.fits"), wavelength=grid)
    assert spectra.flux.shape == (1, 40)
    inside = np.abs(grid - 6000) > 400
    np.testing.assert_allclose(spectra.flux[0, inside], shape_of(grid)[inside], rtol=1e-3)


def test_masked_pixels_weigh_nothing(tmp_path):
    flux, bits = shape_of(SDSS_GRID), np.zeros(len(SDSS_GRID), int)
    hit = (SDSS_GRID > 5570) & (SDSS_GRID < 5590)
    flux[hit], bits[hit] = 1e6, 1 << 23
    spectra = read_spectra(write_sdss(tmp_path / "a.fits", flux=flux, and_mask=bits))
    np.testing.assert_allclose(spectra.flux[0], shape_of(paper_grid()), atol=0.05)
    marked = paper_grid()[spectra.mask[0]]
    assert 5568 < marked[0] < 5574 and 5586 < marked[-1] < 5592
    assert (spectra.ivar[0][spectra.mask[0]] == 0).all()


@pytest.fixture(scope="module")
def troubled(tmp_path_factory):
    """A folder in which three files are good and all others bad, each in its own way."""
    tmp_path = tmp_path_factory.mktemp("troubled")
    n = len(SDSS_GRID)
    write_sdss(tmp_path / "good-1.fits")
    write_lamost_old(tmp_path / "good-2.fits")
    write_lamost_new(tmp_path / "good-3.fits.gz")
    write_sdss(tmp_path / "infrared.fits", wavelength=SDSS_GRID + 8000)
    write_sdss(tmp_path / "red.fits", wavelength=SDSS_GRID + 1000)
    write_sdss(tmp_path / "masked.fits", ivar=np.zeros(n))
    write_sdss(tmp_path / "half.fits", ivar=np.r_[np.zeros(n // 2), np.ones(n - n // 2)])
    write_sdss(tmp_path / "constant.fits", flux=np.full(n, 3.0))
    write_sdss(tmp_path / "zero.fits", flux=np.zeros(n))
    write_sdss(tmp_path / "negative.fits", flux=10 - shape_of(SDSS_GRID))
    write_sdss(tmp_path / "nan.fits", flux=np.full(n, np.nan))
    write_sdss(tmp_path / "no_ivar.fits", drop=("ivar",))
    write_sdss(tmp_path / "no_grid.fits", drop=("loglam",))
    write_sdss(tmp_path / "no_table.fits", drop=("COADD",))
    write_lamost_new(tmp_path / "no_flux.fits", drop=("FLUX",))
    write_sdss(tmp_path / "backwards.fits", wavelength=SDSS_GRID[::-1])
    write_paper(tmp_path / "paper.fits", np.ones((2, 3000)), [0, 1])
    fits.PrimaryHDU(np.ones((2, 50))).writeto(tmp_path / "picture.fits")
    fits.PrimaryHDU().writeto(tmp_path / "empty.fits")
    (tmp_path / "nothing.fits").write_bytes(b"")
    (tmp_path / "text.fits").write_bytes(b"SIMPLE is not what this is")
    for name, ending in (("good-1.fits", "fits"), ("good-2.fits", "fits")):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / f"cut-{name[:6]}.{ending}").write_bytes(whole[: len(whole) // 3])
    packed = (tmp_path / "good-3.fits.gz").read_bytes()
    (tmp_path / "cut-gz.fits.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "garbled.fits.gz").write_bytes(packed[:200] + b"\0" * 200 + packed[400:])
    return tmp_path


REASONS = {
    "infrared": "it covers 11799-17217 Angstrom, which does not overlap with 3900-9000",
    "red": "it has usable pixels on 82% of 3900-9000 Angstrom, wanted are 90%: it covers 4799-",
    "masked": "all its pixels are masked, NaN or without ivar",
    "half": "it has usable pixels on 6",
    "constant": "it is constant: every usable pixel is 3",
    "zero": "it is constant: every usable pixel is 0",
    "negative": "its total flux in 3900-9000 Angstrom is not positive: -",
    "nan": "all its pixels are masked, NaN or without ivar",
    "no_ivar": "its table 'COADD' must have the columns flux, ivar and loglam or wavelength, got",
    "no_grid": "its table 'COADD' must have the columns flux, ivar and loglam or wavelength, got",
    "no_table": "it has neither an image of rows in its first HDU nor a table with a column flux",
    "no_flux": "it has neither an image of rows in its first HDU nor a table with a column flux",
    "backwards": "its wavelengths do not increase",
    "paper": "it holds many spectra, in the paper's layout; use read_paper_files",
    "picture": "the image in its first HDU must have the rows flux, ivar, wavelength, and-mask",
    "empty": "it has neither an image of rows in its first HDU nor a table with a column flux",
    "nothing": "damaged, or no FITS file",
    "text": "damaged, or no FITS file",
    "cut-good-1": "damaged, or no FITS file",
    "cut-good-2": "damaged, or no FITS file",
    "cut-gz": "damaged, or no FITS file",
    "garbled": "damaged, or no FITS file",
}


def test_a_bad_file_never_stops_the_others(troubled):
    spectra = read_spectra(troubled)
    assert spectra.name.tolist() == ["good-1", "good-2", "good-3"]
    found = {os.path.basename(f.file).split(".")[0]: f.reason for f in spectra.failures}
    assert found.keys() == REASONS.keys()
    for name, reason in REASONS.items():
        assert found[name].startswith(reason), (name, found[name])
    assert all(f.row is None for f in spectra.failures)


@pytest.mark.parametrize("name", sorted(REASONS))
def test_or_each_of_them_raises(troubled, name):
    file = next(p for p in troubled.iterdir() if p.name.split(".")[0] == name)
    with pytest.raises(ValueError, match=rf"{name}\.fits") as caught:
        read_spectra([troubled / "good-1.fits", file], on_error="raise")
    assert REASONS[name] in str(caught.value)


def test_a_named_file_that_is_not_there_is_listed_too(tmp_path):
    write_sdss(tmp_path / "a.fits")
    spectra = read_spectra([tmp_path / "gone.fits", str(tmp_path / "a.fits")])
    assert spectra.name.tolist() == ["a"]
    assert spectra.failures[0].reason == "there is no such file"


DAMAGE = {
    b"TTYPE1  = 'flux    '": b"TTYPE1  = \xffflux\xff    ",  # what no card may hold
    b"TFORM2  = 'E       '": b"TFORM2  = '?E      '",
    b"TFIELDS =": b"TFIELDS X",
    b"XTENSION= 'BINTABLE'": b"XTENSION- \xffBINTABLE'",
}


@pytest.mark.parametrize("card", sorted(DAMAGE))
def test_a_damaged_header_never_stops_the_others(tmp_path, card):
    """Errors of astropy are then none of input and output, nor of a value."""
    for name in ("a.fits", "b.fits"):
        write_sdss(tmp_path / name)
    whole = (tmp_path / "a.fits").read_bytes()
    assert card in whole
    (tmp_path / "a.fits").write_bytes(whole.replace(card, DAMAGE[card]))
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == ["b"]
    assert "a.fits" in spectra.failures[0].file and spectra.failures[0].reason
    assert ".verify(" not in spectra.failures[0].reason  # that is advice on astropy


def test_a_file_that_breaks_off_in_a_header_has_not_lost_its_class_in_silence(tmp_path):
    path = write_sdss(tmp_path / "a.fits")
    with fits.open(path) as hdus:
        header = hdus[-1]._header_offset
    path.write_bytes(path.read_bytes()[: header + 2000])
    assert "damaged, or no FITS file" in read_spectra(path).failures[0].reason


def test_a_link_to_nowhere_is_listed(tmp_path):
    write_sdss(tmp_path / "a.fits")
    (tmp_path / "b.fits").symlink_to(tmp_path / "gone.fits")
    (tmp_path / "c.fits").mkdir()
    assert [f.reason for f in read_spectra(tmp_path).failures] == ["there is no such file"]


def test_only_bad_files_give_an_empty_table(tmp_path):
    (tmp_path / "a.fits").write_bytes(b"")
    spectra = read_spectra(tmp_path)
    assert len(spectra) == 0 and spectra.flux.shape == (0, 3000) and len(spectra.failures) == 1


def test_patterns_lists_and_files_named_twice(tmp_path, monkeypatch):
    for name in ("a1.fits", "a2.fit", "b.fits"):
        write_sdss(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    assert read_spectra("a*.fit*").name.tolist() == ["a1", "a2"]
    assert read_spectra(["b.fits", "*.fits"]).name.tolist() == ["b", "a1"]
    write_sdss(tmp_path / "odd[1].fits")
    assert read_spectra("odd[1].fits").name.tolist() == ["odd[1]"]


@pytest.mark.parametrize("paths", [None, 3])
def test_what_is_no_path_is_refused(paths):
    with pytest.raises(TypeError, match=r"paths must be a file, a folder, .* got"):
        read_spectra(paths)


def test_nothing_to_read(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no FITS file \(\.fits, \.fit, .*name files"):
        read_spectra(tmp_path)
    with pytest.raises(FileNotFoundError, match="no FITS file"):
        read_spectra(tmp_path / "*.fits")
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder '.*/plates'"):
        read_spectra(tmp_path / "plates")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"wavelength": [2.0, 1.0]}, "wavelength must be an increasing array"),
        ({"wavelength": 5.0}, "wavelength must be an increasing array"),
        ({"min_coverage": 1.5}, r"min_coverage must be in \(0, 1\], got 1.5"),
        ({"on_error": "skip"}, r"on_error must be one of \['list', 'raise'\], got 'skip'"),
    ],
)
def test_bad_arguments(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        read_spectra(write_sdss(tmp_path / "a.fits"), **change)


def test_without_astropy_it_says_how_to_get_it(tmp_path, monkeypatch):
    path = write_sdss(tmp_path / "a.fits")
    monkeypatch.setitem(sys.modules, "astropy", None)
    monkeypatch.setitem(sys.modules, "astropy.io.fits", None)
    with pytest.raises(ImportError, match=r"reading FITS files needs .* pip install 'dipedl\[spec"):
        read_spectrum(path)
    with pytest.raises(ImportError, match=r"dipedl\[spectra\]"):
        read_spectra(tmp_path)


def test_less_coverage_is_accepted_on_demand(troubled):
    spectra = read_spectra(troubled / "red.fits", min_coverage=0.8)
    assert spectra.mask[0].mean() == pytest.approx(0.18, abs=0.01)
    first = np.flatnonzero(~spectra.mask[0])[0]
    assert (spectra.flux[0, :first] == spectra.flux[0, first]).all()


@pytest.mark.data
@pytest.mark.skipif(not os.environ.get("DIPEDL_DATA"), reason="DIPEDL_DATA is not set")
def test_real_spectra_survive_the_way_through_files(tmp_path):
    """Real spectra written as SDSS and LAMOST files come back as they were."""
    with np.load(os.path.join(os.environ["DIPEDL_DATA"], "spectra", "real_spectra.npz")) as file:
        data = {name: file[name] for name in ("flux", "snr", "label", "z")}
    rows = np.flatnonzero(np.isfinite(data["flux"]).all(axis=1) & (data["snr"] > 5))[::12]
    assert len(rows) > 20
    for i in rows:
        flux = np.interp(SDSS_GRID, paper_grid(), data["flux"][i])
        facts = {"kind": str(data["label"][i]), "z": float(data["z"][i])}
        write_sdss(tmp_path / f"{i}.fits", flux=flux, snr=float(data["snr"][i]), **facts)
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == [str(i) for i in rows] and not spectra.failures
    kinds = np.array(["GALAXY", "QSO", "STAR"])
    assert kinds[spectra.label].tolist() == data["label"][rows].tolist()
    np.testing.assert_allclose(spectra.snr, data["snr"][rows], rtol=1e-6)
    for got, wanted in zip(spectra.flux, data["flux"][rows], strict=True):
        # Two interpolations smooth the noise of single pixels; what is left is the same spectrum.
        assert np.corrcoef(got, wanted)[0, 1] > 0.8
        assert got.sum() == pytest.approx(wanted.sum(), rel=0.01)
