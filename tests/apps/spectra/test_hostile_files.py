"""Files that were made to hang, to fill the memory or to talk: each is a failure with a reason."""

import bz2
import gzip
import os
import socket
import tracemalloc
import warnings

import numpy as np
import pytest

pytest.importorskip("astropy")

from dipedl.apps.spectra import files, read_paper_files, read_spectra
from fits_writers import write_lamost_old, write_paper, write_sdss


def card(key, value):
    return f"{key:<8}= {value:>20}".ljust(80).encode()


def forged(path, key, value, nth=0):
    """Another value in the nth card of this key."""
    data, at = bytearray(path.read_bytes()), -1
    for _ in range(nth + 1):
        at = data.index(f"{key:<8}=".encode(), at + 1)
    data[at : at + 80] = card(key, value)
    path.write_bytes(data)


FORGERIES = {
    "axes": (write_sdss, "NAXIS", 999999999999, 0, "NAXIS must be in 0..999, got 999999999999"),
    "axes of a table": (write_sdss, "NAXIS", 999999999999, 1, "NAXIS must be in 0..999"),
    "many axes": (write_lamost_old, "NAXIS", 10**7, 0, "NAXIS must be in 0..999, got 10000000"),
    "few axes": (write_sdss, "NAXIS", -1, 1, "NAXIS must be in 0..999, got -1"),
    "no number": (write_sdss, "NAXIS", "'x'", 0, "NAXIS must be an integer, got b\"= 'x'\""),
    "width": (write_lamost_old, "NAXIS1", 10**12, 0, "NAXISn is 1000000000000, more than the"),
    "rows": (write_sdss, "NAXIS2", 10**12, 0, "NAXISn is 1000000000000, more than the"),
    "no width": (write_sdss, "NAXIS1", 0, 0, "no header begins at byte 5760"),
    "negative": (write_sdss, "NAXIS2", -5, 0, "its headers promise data of a negative size"),
    "columns": (write_sdss, "TFIELDS", 10**18 - 1, 0, "TFIELDS must be in 0..999, got 9999999"),
    "heap": (write_sdss, "PCOUNT", 10**14, 0, "PCOUNT is 100000000000000, more than the"),
    "groups": (write_sdss, "GCOUNT", 10**14, 0, "GCOUNT is 100000000000000, more than the"),
    "beyond int": (write_sdss, "NAXIS1", 10**25, 0, "NAXIS1 must be an integer, got"),
    "bits": (write_lamost_old, "BITPIX", -64, 0, "truncated: its headers promise"),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_sizes_that_headers_invent(tmp_path, name):
    """Some kept the reader busy for hours; data were read as headers after others."""
    write, key, value, nth, reason = FORGERIES[name]
    forged(write(tmp_path / "a.fits"), key, value, nth)
    write_sdss(tmp_path / "b.fits")
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == ["b"]
    assert spectra.failures[0].reason.startswith(f"damaged, or no FITS file: {reason}")


def test_a_card_over_which_astropy_stumbles_is_told_in_words(tmp_path):
    path = write_sdss(tmp_path / "a.fits")
    path.write_bytes(path.read_bytes().replace(b"TTYPE1", b"TTYPE\x01", 1))
    reason = read_spectra(path).failures[0].reason
    assert reason == "damaged, or no FITS file: astropy cannot read its headers"


def test_padding_behind_the_last_table_is_no_damage(tmp_path):
    path = write_sdss(tmp_path / "a.fits")
    path.write_bytes(path.read_bytes() + b"\0" * 5000)
    spectra = read_spectra(path)
    assert spectra.label.tolist() == [1] and not spectra.failures


def test_endless_headers(tmp_path):
    whole = write_sdss(tmp_path / "a.fits").read_bytes()
    comments = b"COMMENT".ljust(80) * 36_036
    (tmp_path / "a.fits").write_bytes(whole[:80] + comments + whole[80:])
    (tmp_path / "b.fits").write_bytes(whole[:80] + comments[:28_800])
    reasons = [failure.reason.split(": ", 1)[1] for failure in read_spectra(tmp_path).failures]
    assert reasons == ["its headers have more than 36000 cards", "the header at byte 0 breaks off"]


def test_what_is_no_file_is_never_opened(tmp_path):
    os.mkfifo(tmp_path / "fifo.fits")
    socket.socket(socket.AF_UNIX).bind(str(tmp_path / "socket.fits"))
    (tmp_path / "zero.fits").symlink_to("/dev/zero")
    write_sdss(tmp_path / "good.fits")
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == ["good"] and len(spectra.failures) == 3
    for failure in spectra.failures:
        assert failure.reason == "it is no file but a folder, device, FIFO or socket"


@pytest.mark.parametrize("name", ["bomb.fits.gz", "bomb.fits"])
def test_a_small_file_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path, name, monkeypatch):
    monkeypatch.setattr(files, "_MOST_BYTES", 4_000_000)
    whole = write_sdss(tmp_path / "b.fits").read_bytes()
    bomb = gzip.compress(whole) + gzip.compress(bytes(10_000_000)) * 200  # 2 GB in 2 MB
    assert len(bomb) < 2.1e6
    (tmp_path / name).write_bytes(bomb)
    tracemalloc.start()
    spectra = read_spectra(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert spectra.name.tolist() == ["b"] and peak < 20e6
    assert spectra.failures[0].reason == "it holds more than 4 MB, which no such file does"


def test_a_file_that_is_far_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_MOST_BYTES", 4_000_000)
    with open(tmp_path / "a.fits", "wb") as file:
        file.truncate(10**11)  # holes: it takes no space
    (failure,) = read_spectra(tmp_path).failures
    assert failure.reason == "it holds more than 4 MB, which no such file does"
    with pytest.raises(ValueError, match="no header begins at byte 0"):
        read_paper_files(tmp_path)  # those may be large, and are not read as a whole


def test_packed_files_of_many_spectra_unpack_to_their_size_at_most(tmp_path, monkeypatch):
    flux = np.random.default_rng(0).normal(9, 1, (40, 3000))
    path = write_paper(tmp_path / "a.fits.gz", flux, np.arange(40) % 3)
    monkeypatch.setattr(files, "_MOST_BYTES", 0)
    assert len(read_paper_files(path)) == 40
    monkeypatch.setattr(files, "_MOST_RATIO", 1)
    with pytest.raises(ValueError, match="it holds more than"):
        read_paper_files(path)


def test_packed_without_the_ending_and_packed_otherwise(tmp_path):
    whole = write_sdss(tmp_path / "a.fits").read_bytes()
    (tmp_path / "b.fits").write_bytes(gzip.compress(whole))
    (tmp_path / "c.fits").write_bytes(bz2.compress(whole))
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == ["a", "b"]
    assert spectra.failures[0].reason.endswith("no header begins at byte 0")


def test_astropy_says_nothing_by_itself(tmp_path):
    path = write_sdss(tmp_path / "a.fits")
    damaged = path.read_bytes().replace(b"TTYPE8  = 'model   '", b"TTYPE8  = \xffmodel\xff   ")
    path.write_bytes(damaged.replace(b"TFORM6  = 'E       '", b"TFORM6  = '?E      '"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        read_spectra(tmp_path)
    assert seen == []


@pytest.mark.parametrize("last", [np.inf, np.nan])
def test_wavelengths_that_are_no_numbers(tmp_path, last):
    from fits_writers import SDSS_GRID

    path = write_sdss(tmp_path / "a.fits", wavelength=np.r_[SDSS_GRID[:-1], last])
    assert read_spectra(path).failures[0].reason == "its wavelengths do not increase"


def test_flux_beyond_float32_is_a_failure(tmp_path):
    flux = np.linspace(1e299, 1e300, 3909)
    from astropy.io import fits

    path = write_lamost_old(tmp_path / "a.fits")
    with fits.open(path) as hdus:
        rows = hdus[0].data.astype(np.float64)
        rows[0] = flux
        header = hdus[0].header
        fits.PrimaryHDU(rows, header).writeto(tmp_path / "b.fits")
    spectra = read_spectra(tmp_path)
    assert spectra.name.tolist() == ["a"]
    assert spectra.failures[0].reason.endswith("is too large for float32")


def test_a_size_that_is_said_twice_is_refused(tmp_path):
    path = tmp_path / "twice.fits"
    card = b"NAXIS   =  9223372036854775808".ljust(80)
    first = [b"SIMPLE  =                    T", b"BITPIX  =                    8", b"NAXIS   = 0"]
    header = b"".join(c.ljust(80) for c in [*first, card, b"END"])
    path.write_bytes(header.ljust(2880))
    failures = read_spectra(path).failures
    assert [f.reason for f in failures] and "NAXIS occurs twice" in failures[0].reason
