import hashlib
import io
import sys
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

pytest.importorskip("astropy")

from dipedl_bench.datasets import lamost_spectra, load_lamost
from fits_writers import write_paper

GALAXIES, QUASARS, STARS = 14, 6, 25


class Server(ThreadingHTTPServer):
    """Serves `content`, and hangs up after `cuts` bytes of each of the first answers."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content, self.cuts, self.asked = None, [], 0
        self.url = f"http://127.0.0.1:{self.server_address[1]}/spectra.tar"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        server = self.server
        server.asked += 1
        if server.content is None:
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(server.content)))
        self.end_headers()
        self.wfile.write(server.content[: server.cuts.pop(0) if server.cuts else None])

    def log_message(self, *args):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


# the download


def test_a_download_that_breaks_off_begins_anew(server, files, tmp_path):
    server.content, server.cuts = (files / "train_data_01.fits").read_bytes(), [10_000]
    assert len(lamost_spectra(url=server.url)) == 25 and server.asked == 2
    assert sorted(p.name for p in cache(tmp_path).iterdir()) == ["SHA256SUMS", "train_data.fits"]


def test_what_breaks_off_again_and_again_leaves_nothing(server, files, tmp_path):
    content = (files / "train_data_01.fits").read_bytes()
    server.content, server.cuts = content, [10_000, 20_000]
    with pytest.raises(ConnectionError, match=r"lamost/\*\.fits: no mirror could be reached"):
        lamost_spectra(url=server.url)
    assert list(cache(tmp_path).iterdir()) == []


def test_an_archive_with_another_checksum_is_refused(server, files, tmp_path, monkeypatch):
    server.content = (files / "train_data_01.fits").read_bytes()
    right = hashlib.sha256(server.content).hexdigest()
    with pytest.raises(ValueError, match=r"(?s)no mirror gave the published file.*does not match"):
        lamost_spectra(url=server.url, sha256="0" * 64)
    assert list(cache(tmp_path).iterdir()) == []
    assert len(lamost_spectra(url=server.url, sha256=right.upper())) == 25
    monkeypatch.setenv("DIPEDL_LAMOST_SHA256", "1" * 64)
    with pytest.raises(ValueError, match=r"sha256:1{64}, got sha256:.*delete"):
        lamost_spectra(url=server.url)
    with pytest.raises(ValueError, match="64 hexadecimal digits, got 'md5'"):
        lamost_spectra(url=server.url, sha256="md5")


def test_what_cannot_be_downloaded(server):
    with pytest.raises(ConnectionError, match=r"404.*\n.*set DIPEDL_DATA to a directory"):
        lamost_spectra(url=server.url)
    with pytest.raises(ConnectionError, match="check the network and load again"):
        lamost_spectra(url="http://127.0.0.1:9/gone")
    with pytest.raises(ValueError, match="url must begin with http"):
        lamost_spectra(url="file:///etc/passwd")


# the spectra


def paper_rows(n, seed):
    return np.random.default_rng(seed).normal(50, 5, (n, 3000))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """All galaxies and quasars in the first of two files, as in the paper's ten."""
    folder = tmp_path_factory.mktemp("files")
    label = np.repeat([0, 1, 2], [GALAXIES, QUASARS, 5])
    write_paper(folder / "train_data_01.fits", paper_rows(25, 0), label, np.arange(25))
    write_paper(folder / "train_data_02.fits", paper_rows(20, 1), np.full(20, 2), np.arange(25, 45))
    return folder


@pytest.fixture(scope="module")
def flux():
    return np.vstack([paper_rows(25, 0), paper_rows(20, 1)]).astype(np.float32)


@pytest.fixture
def archive(files):
    """The files in a folder of an archive, and what does not belong to them."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path in sorted(files.iterdir(), reverse=True):
            tar.add(path, f"spectra_training_data/{path.name}")
        for name in ("../../escaped.txt", "data/._train_data_01.fits", "readme.md"):
            entry = tarfile.TarInfo(name)
            entry.size = 3
            tar.addfile(entry, io.BytesIO(b"abc"))
        link = tarfile.TarInfo("data/link.fits")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        # neither its folder nor its link is followed: only bytes and the last name are taken
        inside = tarfile.TarInfo("../../../train_data_03.fits")
        content = (files / "train_data_02.fits").read_bytes()
        inside.size = len(content)
        tar.addfile(inside, io.BytesIO(content))
    return stream.getvalue()


def cache(tmp_path):
    return tmp_path / "cache" / "lamost"


def test_offline_from_a_data_directory(files, flux, tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "lamost").symlink_to(files)
    for given in ({"data_dir": tmp_path / "data"}, {}):
        spectra = lamost_spectra(**given)
        np.testing.assert_array_equal(spectra.flux, flux)
        assert np.bincount(spectra.label).tolist() == [GALAXIES, QUASARS, STARS]
        monkeypatch.setenv("DIPEDL_DATA", str(tmp_path / "data"))
    assert not cache(tmp_path).exists()


def test_nothing_offline(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has none; put train_data_01\.fits .*dropbox"):
        lamost_spectra(tmp_path)


def test_recorded_checksums_count_in_a_data_directory_too(files, tmp_path):
    folder = tmp_path / "lamost"
    folder.mkdir()
    for path in files.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    digest = hashlib.sha256((folder / "train_data_01.fits").read_bytes()).hexdigest()
    (folder / "SHA256SUMS").write_text(f"{digest} *train_data_01.fits\n")
    assert len(lamost_spectra(tmp_path)) == 45
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  train_data_01.fits\n")
    with pytest.raises(ValueError, match=r"train_data_01\.fits' must have the checksum that was"):
        lamost_spectra(tmp_path)


def test_downloaded_once_and_known_again(server, archive, flux, tmp_path, monkeypatch):
    server.content = archive
    spectra = lamost_spectra(url=server.url)
    np.testing.assert_array_equal(spectra.flux[:45], flux)
    assert server.asked == 1
    assert sorted(p.name for p in cache(tmp_path).iterdir()) == [
        "SHA256SUMS",
        "train_data_01.fits",
        "train_data_02.fits",
        "train_data_03.fits",
    ]
    assert (
        not list(tmp_path.rglob("escaped.txt")) and not (tmp_path / "train_data_03.fits").exists()
    )
    sums = (cache(tmp_path) / "SHA256SUMS").read_text()
    assert f"{hashlib.sha256(archive).hexdigest()}  spectra_training_data.tar" in sums

    assert len(lamost_spectra(url=server.url)) == 65 and server.asked == 1  # from the cache
    one = cache(tmp_path) / "train_data_02.fits"
    changed = bytearray(one.read_bytes())
    changed[9000] ^= 1
    one.write_bytes(changed)
    with pytest.raises(ValueError, match=r"train_data_02\.fits' must have the checksum .* delete"):
        lamost_spectra(url=server.url)

    one.unlink()  # a file is missing: the archive comes again, and must be the same one
    server.content = archive + b"\0" * 512
    with pytest.raises(ValueError, match=r"spectra_training_data\.tar' must have the checksum"):
        lamost_spectra(url=server.url)
    (cache(tmp_path) / "spectra_training_data.tar").unlink()
    server.content = archive
    monkeypatch.setenv("DIPEDL_LAMOST_URL", server.url)
    assert len(lamost_spectra()) == 65


def test_two_members_of_one_name_are_both_kept(server, files, tmp_path):
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for folder, name in (("a", "train_data_01.fits"), ("b", "train_data_02.fits")):
            tar.add(files / name, f"{folder}/spectra.fits")
    server.content = stream.getvalue()
    assert len(lamost_spectra(url=server.url)) == 45
    names = {"SHA256SUMS", "spectra.fits", "spectra-2.fits"}
    assert {p.name for p in cache(tmp_path).iterdir()} == names
    assert len(lamost_spectra(url=server.url)) == 45 and server.asked == 1


def test_the_address_may_serve_one_file(server, files, tmp_path):
    server.content = (files / "train_data_01.fits").read_bytes()
    assert len(lamost_spectra(url=server.url)) == 25


@pytest.mark.parametrize("content", [b"<!DOCTYPE html> sign in", b"", "empty"])
def test_what_is_no_archive(server, tmp_path, content):
    if content == "empty":
        stream = io.BytesIO()
        tarfile.open(fileobj=stream, mode="w").close()
        content = stream.getvalue()
    server.content = content
    with pytest.raises(
        ValueError, match=r"must serve an archive of FITS files, .*DIPEDL_LAMOST_URL"
    ):
        lamost_spectra(url=server.url)
    assert not (cache(tmp_path) / "SHA256SUMS").exists()


# the problem


def as_the_paper_splits(label, known, seed):
    """Rows of the parts, as the released code numbers them; stars out."""
    rows = np.flatnonzero(np.isin(label, known))
    order = np.random.default_rng(seed).permutation(len(rows))
    n = int(len(rows) * 0.2)
    train, validation = order[: len(rows) - 2 * n], order[len(rows) - 2 * n : len(rows) - n]
    return rows[train], rows[validation], rows[order[len(rows) - n :]]


@pytest.mark.parametrize("seed", [10, 20])
def test_the_protocol_of_the_paper(files, flux, tmp_path, seed):
    (tmp_path / "lamost").symlink_to(files)
    data = load_lamost(random_state=seed, data_dir=tmp_path)
    label = np.repeat([0, 1, 2], [GALAXIES, QUASARS, STARS])
    train, validation, test = as_the_paper_splits(label, [0, 1], seed)
    n = len(data.X_test)
    assert (len(train), len(validation), n) == (12, 4, 4)
    np.testing.assert_array_equal(data.X_train[:-n], flux[train])
    np.testing.assert_array_equal(data.X_train[-n:], flux[validation])
    np.testing.assert_array_equal(data.X_test, flux[test])
    np.testing.assert_array_equal(data.y_train, label[np.r_[train, validation]])
    np.testing.assert_array_equal(data.y_test, label[test])
    np.testing.assert_array_equal(data.ood["stars"], flux[label == 2])
    assert data.target_names == ("GALAXY", "QSO")
    assert data.provenance[0].urls[0].startswith("https://www.dropbox.com/")


def test_another_class_as_the_foreign_one(files, flux, tmp_path):
    """The larger known class is cut to the smaller one, the foreign one to the test set."""
    (tmp_path / "lamost").symlink_to(files)
    data = load_lamost(ood="galaxy", data_dir=tmp_path)
    assert data.target_names == ("QSO", "STAR")
    y = np.r_[data.y_train, data.y_test]
    assert np.bincount(y).tolist() == [QUASARS, QUASARS]
    assert len(data.X_test) == len(data.ood["galaxies"]) == 2
    kept = np.random.default_rng(10).choice(np.arange(20, 45) - GALAXIES, QUASARS, replace=False)
    rows = np.r_[np.arange(QUASARS), np.sort(kept)] + GALAXIES
    order = np.random.default_rng(10).permutation(12)
    np.testing.assert_array_equal(data.X_test, flux[rows[order[-2:]]])
    drawn = np.random.default_rng(11).choice(GALAXIES, 2, replace=False)
    np.testing.assert_array_equal(data.ood["galaxies"], flux[:GALAXIES][drawn])

    data = load_lamost(ood="quasar", data_dir=tmp_path)
    assert data.target_names == ("GALAXY", "STAR") and set(data.ood) == {"quasars"}
    with pytest.raises(ValueError, match=r"ood must be one of .*'star'.*, got 'planet'"):
        load_lamost(ood="planet", data_dir=tmp_path)


def test_spectra_that_are_left_out_are_said(files, tmp_path):
    (tmp_path / "lamost").mkdir()
    for path in files.iterdir():
        (tmp_path / "lamost" / path.name).write_bytes(path.read_bytes())
    broken = tmp_path / "lamost" / "train_data_01.fits"
    broken.write_bytes(broken.read_bytes()[:100_000])
    words = r"^1 files or rows of the LAMOST spectra are left out, .*train_data_01\.fits"
    with pytest.warns(UserWarning, match=words):
        assert len(lamost_spectra(tmp_path)) == 20
    with (
        pytest.warns(UserWarning, match=words),
        pytest.raises(ValueError, match=r"GALAXY and QSO, got 0 and 0; .*train_data_01"),
    ):
        load_lamost(data_dir=tmp_path)


def test_without_astropy_it_says_how_to_get_it(files, tmp_path, monkeypatch):
    (tmp_path / "lamost").symlink_to(files)
    monkeypatch.setitem(sys.modules, "astropy", None)
    monkeypatch.setitem(sys.modules, "astropy.io.fits", None)
    with pytest.raises(ImportError, match=r"pip install 'dipedl\[spectra\]'"):
        load_lamost(data_dir=tmp_path)
