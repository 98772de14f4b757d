import hashlib
import io
import os
import sys
import tarfile

import pooch
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
def test_data_dir_needs_no_pooch(folder):
    assert fetch(NAME, folder) == folder / NAME
    assert fetch(NAME, str(folder)) == folder / NAME


@pytest.mark.usefixtures("no_pooch")
def test_environment_names_the_directory(folder, monkeypatch):
    monkeypatch.setenv("DIPEDL_DATA", str(folder))
    assert fetch(NAME) == folder / NAME


def test_the_argument_comes_before_the_environment(folder, monkeypatch, tmp_path):
    monkeypatch.setenv("DIPEDL_DATA", str(tmp_path / "elsewhere"))
    assert fetch(NAME, folder) == folder / NAME


def test_home_is_expanded(folder, monkeypatch):
    monkeypatch.setenv("HOME", str(folder.parent))
    assert fetch(NAME, "~/offline") == folder / NAME


@pytest.mark.parametrize("data_dir", [3, b"bytes", True])
def test_data_dir_must_be_a_path(data_dir):
    with pytest.raises(TypeError, match="data_dir must be a path or None, got"):
        fetch(NAME, data_dir)


def test_missing_directory(tmp_path, published):
    with pytest.raises(FileNotFoundError) as caught:
        fetch(NAME, tmp_path / "nowhere")
    message = str(caught.value)
    assert message.startswith("data_dir must name a directory")
    assert f"'{tmp_path / 'nowhere'}' is not a directory" in message
    assert "put http://127.0.0.1:9/gone there as" in message and "DIPEDL_DATA" in message


def test_missing_file_is_not_downloaded_instead(tmp_path, monkeypatch, published, mirror):
    mirror.files["/file"] = CONTENT
    published(f"{mirror.url}/file")
    monkeypatch.setenv("DIPEDL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=f"DIPEDL_DATA must .* has no file '{NAME}'"):
        fetch(NAME)
    assert mirror.asked == []


def test_a_directory_of_that_name_is_no_file(tmp_path, published):
    (tmp_path / NAME).mkdir(parents=True)
    with pytest.raises(FileNotFoundError, match="has no file"):
        fetch(NAME, tmp_path)


# checksums


def test_mismatch_names_file_hashes_sizes_and_remedy(folder):
    damaged = CONTENT[:-1] + b"!"
    (folder / NAME).write_bytes(damaged)
    with pytest.raises(ValueError) as caught:
        fetch(NAME, folder)
    message = str(caught.value)
    assert str(folder / NAME) in message
    assert f"md5:{hashlib.md5(CONTENT).hexdigest()}, 2100 bytes" in message
    assert f"got md5:{hashlib.md5(damaged).hexdigest()}, 2100 bytes" in message
    assert "replace it by http" in message


def test_any_published_md5_will_do(folder, published):
    right = hashlib.md5(CONTENT).hexdigest()
    published(md5=("0" * 32, right), size=None)
    assert fetch(NAME, folder).exists()
    published(md5=("0" * 32, "1" * 32), size=None)
    with pytest.raises(ValueError, match=f"md5:{'0' * 32} or md5:{'1' * 32}, got md5:{right}"):
        fetch(NAME, folder)


def test_sha256_comes_before_md5(folder, published):
    published(sha256=hashlib.sha256(CONTENT).hexdigest(), md5=("0" * 32,))
    assert fetch(NAME, folder).exists()
    published(sha256="0" * 64)
    with pytest.raises(ValueError, match="must have the checksum sha256:0000"):
        fetch(NAME, folder)


def test_an_unchanged_file_is_hashed_once(folder, monkeypatch):
    calls = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: calls.append(a) or real(*a))
    for _ in range(3):
        fetch(NAME, folder)
    assert len(calls) == 1
    os.utime(folder / NAME, ns=(1, 1))
    fetch(NAME, folder)
    assert len(calls) == 2


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


@pytest.mark.usefixtures("no_pooch")
def test_a_cache_hit_needs_no_pooch(folder, monkeypatch):
    monkeypatch.setenv("DIPEDL_CACHE", str(folder))
    assert fetch(NAME) == folder / NAME


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


def test_a_mirror_that_recovers(mirror, published, monkeypatch):
    published(f"{mirror.url}/file")
    monkeypatch.setattr(
        pooch.core.time, "sleep", lambda seconds: mirror.files.update({"/file": CONTENT})
    )
    assert fetch(NAME).read_bytes() == CONTENT
    assert len(mirror.asked) == 2


def test_a_damaged_cache_is_named(folder, monkeypatch):
    monkeypatch.setenv("DIPEDL_CACHE", str(folder))
    (folder / NAME).write_bytes(b"damaged")
    with pytest.raises(ValueError, match="delete it and load again to download it again"):
        fetch(NAME)


def test_cache_below_a_file(published, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DIPEDL_CACHE", str(tmp_path / "file"))
    with pytest.raises(PermissionError, match=r"cache directory .*/file/mnist'.* set DIPEDL_CACHE"):
        fetch(NAME)


def test_the_users_cache_directory(folder, monkeypatch):
    monkeypatch.delenv("DIPEDL_CACHE")
    monkeypatch.setattr(pooch, "os_cache", lambda project: folder if project == "dipedl" else None)
    assert fetch(NAME) == folder / NAME


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


def test_a_member_of_another_content_is_refused(archived):
    archived(test_batch=CONTENT + b"!")
    with pytest.raises(ValueError, match="delete it and the archive beside it, and load again"):
        fetch("cifar10/test_batch")


def test_an_archive_without_the_member_leaves_nothing(archived, tmp_path):
    archived(readme=CONTENT)
    message = "must be an archive that holds the file 'cifar-10-batches-py/test_batch'"
    with pytest.raises(ValueError, match=message):
        fetch("cifar10/test_batch")
    left = [p.name for p in (tmp_path / "cache/cifar10").iterdir()]
    assert left == ["cifar-10-python.tar.gz"]


def test_a_missing_member_names_its_archive(archived, tmp_path):
    archived(test_batch=CONTENT)
    message = "put 'cifar-10-batches-py/test_batch' out of http://.*/a.tar.gz there as .*download"
    with pytest.raises(FileNotFoundError, match=message):
        fetch("cifar10/test_batch", tmp_path)


def test_a_file_that_no_mirror_has(tmp_path, monkeypatch):
    monkeypatch.delenv("DIPEDL_DATA", raising=False)
    with pytest.raises(FileNotFoundError, match=r"'gtsrb/labels\.npy' has no official mirror"):
        fetch("gtsrb/labels.npy")
    with pytest.raises(FileNotFoundError, match="no official mirror has it") as caught:
        fetch("gtsrb/labels.npy", tmp_path)
    assert "to download it" not in str(caught.value)


# the registry


def test_registry_is_well_formed():
    for name, file in files.FILES.items():
        assert all(url.startswith("http") and url.endswith(name.split("/")[1]) for url in file.urls)
        assert all(len(digest) == 32 and int(digest, 16) for digest in file.md5)
        assert file.sha256 is None or len(file.sha256) == 64
        if file.archive:
            assert file.archive in files.FILES and file.member.split("/")[1] == name.split("/")[1]


def test_provenance_lists_every_file():
    counts = {"mnist": 4, "kmnist": 4, "omniglot": 2, "fashion_mnist": 8, "cifar10": 7}
    for name, n in counts.items():
        source = files.PROVENANCE[name]
        assert len(source.checksums) == n and source.urls and source.licence
    for name, n in {"gtsrb": 2, "segment": 2, "covertype": 1}.items():
        source = files.PROVENANCE[name]
        assert len(source.checksums) == n and source.urls == ()
    assert "md5:6b91aef0f799c5bb55b94e3f2daec811" in files.PROVENANCE["omniglot"].checksums[0]


@pytest.mark.data
@pytest.mark.parametrize("name", files.FILES)
def test_real_files_have_the_published_md5_and_recorded_sha256(full_dir, name):
    if not (full_dir / name).exists():
        pytest.skip("this directory does not have it")
    path, file = fetch(name, full_dir), files.FILES[name]
    content = path.read_bytes()
    assert hashlib.md5(content).hexdigest() in file.md5
    assert file.sha256 in (None, hashlib.sha256(content).hexdigest())
    assert file.size in (None, len(content))
