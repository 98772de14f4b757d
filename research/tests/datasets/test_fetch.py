import hashlib
import io
import sys
import tarfile

import pytest

from dipedl_bench.datasets import files
from dipedl_bench.datasets.files import fetch

NAME = "mnist/t10k-labels-idx1-ubyte.gz"
ARCHIVE = "cifar10/cifar-10-python.tar.gz"
CONTENT = b"the published content" * 100


@pytest.fixture
def published(monkeypatch, register):
    def publish(*urls, **changes):
        register(NAME, CONTENT, urls or ("http://127.0.0.1:9/gone",), **changes)

    publish()
    return publish


@pytest.fixture
def folder(tmp_path, published):
    path = tmp_path / "offline" / NAME
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENT)
    return tmp_path / "offline"


@pytest.fixture
def no_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)


# a directory of the user's


@pytest.mark.usefixtures("no_pooch")
def test_environment_names_the_directory(folder, monkeypatch):
    monkeypatch.setenv("DIPEDL_DATA", str(folder))
    assert fetch(NAME) == folder / NAME


def test_missing_file_is_not_downloaded_instead(tmp_path, monkeypatch, published, mirror):
    mirror.files["/file"] = CONTENT
    published(f"{mirror.url}/file")
    monkeypatch.setenv("DIPEDL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"DIPEDL_DATA, .* '{NAME}', but .* lacks them"):
        fetch(NAME)
    assert mirror.asked == []


# checksums


def test_mismatch_names_file_hashes_sizes_and_remedy(folder, monkeypatch):
    monkeypatch.setenv("DIPEDL_DATA", str(folder))
    damaged = CONTENT[:-1] + b"!"
    (folder / NAME).write_bytes(damaged)
    with pytest.raises(ValueError) as caught:
        fetch(NAME)
    message = str(caught.value)
    assert str(folder / NAME) in message
    assert f"md5:{hashlib.md5(CONTENT).hexdigest()}, 2100 bytes" in message
    assert f"got md5:{hashlib.md5(damaged).hexdigest()}, 2100 bytes" in message
    assert "replace it by http" in message


# the cache and its mirrors


def test_download_then_cache(mirror, published, tmp_path):
    mirror.files["/file"] = CONTENT
    published(f"{mirror.url}/file")
    path = fetch(NAME)
    assert path == tmp_path / "cache" / NAME and path.read_bytes() == CONTENT
    assert mirror.asked == [("/file", "identity")]
    mirror.files.clear()
    assert fetch(NAME) == path
    assert len(mirror.asked) == 1
    assert [p.name for p in path.parent.iterdir()] == [path.name]  # nothing half-done beside it


def test_next_mirror_when_one_fails_or_lies(mirror, published):
    mirror.files["/wrong"] = CONTENT + b"!"
    mirror.files["/right"] = CONTENT
    published(f"{mirror.url}/gone", f"{mirror.url}/wrong", f"{mirror.url}/right")
    assert fetch(NAME).read_bytes() == CONTENT
    assert [path for path, _ in mirror.asked] == ["/gone", "/gone", "/wrong", "/wrong", "/right"]


def test_wrong_content_everywhere(mirror, published, tmp_path):
    mirror.files["/wrong"] = CONTENT + b"!"
    published(f"{mirror.url}/wrong", "http://127.0.0.1:9/gone")
    with pytest.raises(ValueError, match="no mirror gave the published file") as caught:
        fetch(NAME)
    assert hashlib.md5(CONTENT).hexdigest() in str(caught.value)
    assert hashlib.md5(CONTENT + b"!").hexdigest() in str(caught.value)
    assert not (tmp_path / "cache" / NAME).exists()
    assert len(mirror.asked) == 1 + files.RETRIES


def test_no_network(published, tmp_path):
    urls = ("http://127.0.0.1:9/a", "http://127.0.0.1:9/b")
    published(*urls)
    with pytest.raises(ConnectionError, match="no mirror could be reached") as caught:
        fetch(NAME)
    message = str(caught.value)
    assert all(url in message for url in urls)
    assert f"by hand to '{tmp_path / 'cache' / NAME}'" in message
    assert f"set DIPEDL_DATA to a directory that holds it as '{NAME}'" in message


def test_a_damaged_cache_is_named(folder, monkeypatch):
    monkeypatch.setenv("DIPEDL_CACHE", str(folder))
    (folder / NAME).write_bytes(b"damaged")
    with pytest.raises(ValueError, match="delete it and load again to download it again"):
        fetch(NAME)


# files inside a published archive, and files that no mirror has


@pytest.fixture
def archived(mirror, register):
    """Publish files of CIFAR-10 in an archive on the mirror; the archive's content."""

    def publish(**members):
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w:gz") as tar:
            for name, content in members.items():
                entry = tarfile.TarInfo(f"cifar-10-batches-py/{name}")
                entry.size = len(content)
                tar.addfile(entry, io.BytesIO(content))
        mirror.files["/a.tar.gz"] = stream.getvalue()
        register(ARCHIVE, stream.getvalue(), [f"{mirror.url}/a.tar.gz"])
        for name in ("test_batch", "data_batch_1"):
            member = f"cifar-10-batches-py/{name}"
            register(f"cifar10/{name}", CONTENT, (), archive=ARCHIVE, member=member)

    return publish


def test_members_of_an_archive_come_by_one_download(mirror, archived, tmp_path):
    archived(test_batch=CONTENT, data_batch_1=CONTENT)
    paths = [fetch(f"cifar10/{name}") for name in ("test_batch", "data_batch_1", "test_batch")]
    assert [path.read_bytes() for path in paths] == [CONTENT] * 3
    assert [path for path, _ in mirror.asked] == ["/a.tar.gz"]
    assert sorted(p.name for p in (tmp_path / "cache/cifar10").rglob("*.*")) == [
        "cifar-10-python.tar.gz"
    ]


# the registry


@pytest.mark.data
@pytest.mark.parametrize("name", files.FILES)
def test_real_files_have_the_published_md5_and_recorded_sha256(full_dir, name):
    if not (full_dir / name).exists():
        pytest.skip("this directory does not have it")
    path, file = fetch(name), files.FILES[name]
    content = path.read_bytes()
    assert hashlib.md5(content).hexdigest() in file.md5
    assert file.sha256 in (None, hashlib.sha256(content).hexdigest())
    assert file.size in (None, len(content))
