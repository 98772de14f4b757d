import io
import tarfile

import pytest

from dipedl_bench.datasets.files.fetch import unpack


def tar_of(path, *entries):
    with tarfile.open(path, "w:gz") as tar:
        for entry, content in entries:
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return path


def entry(name, **fields):
    made = tarfile.TarInfo(name)
    for field, value in fields.items():
        setattr(made, field, value)
    return made


def test_takes_the_bytes_to_the_place_asked_for(tmp_path):
    archive = tar_of(tmp_path / "a.tar.gz", (entry("../../up", mode=0o4777), b"bytes"))
    unpack(archive, "../../up", tmp_path / "new" / "here")
    path = tmp_path / "new" / "here"
    assert path.read_bytes() == b"bytes" and path.stat().st_mode & 0o4111 == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.tar.gz", "new"]


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.DIRTYPE])
def test_links_and_folders_are_not_followed(tmp_path, kind):
    (tmp_path / "secret").write_text("secret")
    link = entry("file", type=kind, linkname=str(tmp_path / "secret"))
    archive = tar_of(tmp_path / "a.tar.gz", (link, b""))
    with pytest.raises(ValueError, match="'file' is no regular file"):
        unpack(archive, "file", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", [b"", b"no archive", b"\x1f\x8b cut"])
def test_no_archive(tmp_path, content):
    (tmp_path / "a.tar.gz").write_bytes(content)
    with pytest.raises(ValueError, match=r"a\.tar\.gz' must be an archive that holds .*delete it"):
        unpack(tmp_path / "a.tar.gz", "file", tmp_path / "out")


def test_cut_short_leaves_nothing(tmp_path):
    content = bytes(range(256)) * 4000
    archive = tar_of(tmp_path / "a.tar.gz", (entry("file"), content))
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(ValueError, match="must be an archive"):
        unpack(archive, "file", tmp_path / "out")
    assert [p.name for p in tmp_path.iterdir()] == ["a.tar.gz"]
