"""Saving destroys nothing: whatever goes wrong, what was there stays as it was."""

import ast
import errno
import os
import re
import socket
import stat
from pathlib import Path

import pytest

import dipedl
from dipedl.writing.files import whole_file, writable_target, write_file

ROOT = Path(dipedl.__file__).parent


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def only(folder, *names):
    return sorted(os.listdir(folder)) == sorted(names)


def test_bytes_and_text_come_back(tmp_path):
    write_file(tmp_path / "a", b"\0\r\n")
    write_file(str(tmp_path / "b"), "ü\n")
    assert (tmp_path / "a").read_bytes() == b"\0\r\n"
    assert (tmp_path / "b").read_bytes() == b"\xc3\xbc\n"
    assert only(tmp_path, "a", "b")


@pytest.mark.parametrize("mask", [0o022, 0o077])
def test_a_new_file_has_the_permissions_of_any_other(tmp_path, mask):
    before = os.umask(mask)
    try:
        write_file(tmp_path / "a", b"")
        (tmp_path / "b").write_bytes(b"")
    finally:
        os.umask(before)
    assert mode_of(tmp_path / "a") == mode_of(tmp_path / "b") == 0o666 & ~mask


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755])
def test_an_existing_file_keeps_its_permissions(old, mode):
    old.chmod(mode)
    with whole_file(old) as file:
        beside = next(p for p in old.parent.iterdir() if p != old)
        assert mode_of(beside) == mode  # never readable for more, also while it is written
        file.write(b"new")
    assert (mode_of(old), old.read_bytes()) == (mode, b"new")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root")
def test_an_existing_file_keeps_its_owner(old):
    os.chown(old, 1234, 4321)
    write_file(old, b"new")
    assert (old.stat().st_uid, old.stat().st_gid) == (1234, 4321)


def test_a_link_stays_and_the_file_behind_it_is_replaced(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "file").write_bytes(b"old")
    (tmp_path / "second").symlink_to("far/file")
    (tmp_path / "link").symlink_to("second")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "second").is_symlink()
    assert (tmp_path / "far" / "file").read_bytes() == b"new"
    assert only(tmp_path / "far", "file")


def test_a_link_to_a_file_that_is_not_there_yet_makes_it(tmp_path):
    (tmp_path / "link").symlink_to("file")
    write_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"new"


def device(path):
    path.symlink_to(os.devnull)


def listener(path):
    socket.socket(socket.AF_UNIX).bind(str(path))


def circle(path):
    path.symlink_to(path.name)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Path.mkdir, "it is a folder; name a file in it"),
        (os.mkfifo, "it is a FIFO"),
        (device, "it is a device"),
        (listener, "it is a socket"),
        (circle, "Too many levels of symbolic links"),
    ],
)
def test_what_is_no_file_is_refused_and_stays(tmp_path, make, message):
    path = tmp_path / "out"
    make(path)
    before = os.lstat(path)
    with pytest.raises(OSError, match=rf"^\[Errno \d+\] cannot save to {path}: {message}"):
        write_file(path, b"new")
    assert os.lstat(path).st_ino == before.st_ino and only(tmp_path, "out")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_a_read_only_file_is_refused_also_for_root(old):
    old.chmod(0o444)
    with pytest.raises(PermissionError, match="it is read-only; name another file"):
        write_file(old, b"new")
    assert old.read_bytes() == b"old" and mode_of(old) == 0o444


def test_a_folder_that_is_missing_or_not_writable(tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match=r"the folder .*absent does not exist; create it"):
        write_file(tmp_path / "absent" / "file", b"")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError, match="is not writable; name another"):
        writable_target(tmp_path / "file")


def full(*_, **__):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_file(step, old, monkeypatch):
    monkeypatch.setattr(os, step, full)
    with pytest.raises(OSError, match=r"cannot save to .*file: No space left.*; what was") as info:
        write_file(old, b"new")
    assert info.value.errno == errno.ENOSPC
    assert old.read_bytes() == b"old" and only(old.parent, "file")


def test_a_real_full_disk(old):
    """A limit on the size of files stands for it: the write itself fails, half-way."""
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"cannot save to .*file: File too large"):
            write_file(old, b"new" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert old.read_bytes() == b"old" and only(old.parent, "file")


@pytest.mark.parametrize("stop", [KeyboardInterrupt, SystemExit, ValueError])
def test_whatever_ends_the_block_leaves_the_old_file(old, stop):
    with pytest.raises(stop), whole_file(old) as file:
        file.write(b"new")
        raise stop
    assert old.read_bytes() == b"old" and only(old.parent, "file")


def test_an_error_about_another_file_stays_as_it_is(old):
    with pytest.raises(FileNotFoundError) as info, whole_file(old):
        open(old.parent / "elsewhere")
    assert info.value.filename == str(old.parent / "elsewhere")


def test_the_first_error_wins_if_cleaning_up_fails_too(old, monkeypatch):
    monkeypatch.setattr(os, "replace", full)
    monkeypatch.setattr(os, "unlink", lambda *_: (_ for _ in ()).throw(OSError("read-only")))
    with pytest.raises(OSError, match="No space left"):
        write_file(old, b"new")


def test_planted_names_are_neither_guessed_nor_followed(old, monkeypatch):
    victim = old.parent / "victim"
    victim.write_bytes(b"mine")
    for planted in (".file.part", ".file.partial", ".file.tmp"):
        (old.parent / planted).symlink_to(victim)
    write_file(old, b"new")
    assert victim.read_bytes() == b"mine"
    # even a name that was guessed is not followed
    monkeypatch.setattr("secrets.token_hex", lambda n: "0" * 2 * n)
    guessed = old.parent / f".dipedl-{'0' * 32}.part"
    guessed.symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_file(old, b"newer")
    assert victim.read_bytes() == b"mine" and old.read_bytes() == b"new"


def test_the_file_and_the_name_are_put_on_the_disk_in_this_order(old, monkeypatch):
    steps, fsync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def replaced(*names):
        steps.append("replace")
        replace(*names)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", replaced)
    write_file(old, b"new")
    assert steps == ["file", "replace", "folder"]


def test_a_long_name_has_room_beside_it(tmp_path):
    write_file(tmp_path / ("x" * 255), b"new")
    assert (tmp_path / ("x" * 255)).read_bytes() == b"new"


#: Modules that write by themselves, and why.
WRITERS = {
    "writing/files.py": "the one that all others use",
}
WRITING_CALLS = {"write_text", "write_bytes", "to_csv", "copyfile", "mkstemp", "NamedTemporaryFile"}
_MAY_WRITE = re.compile(rf"""["'][wax]b?\+?["']|os\.replace|O_CREAT|{"|".join(WRITING_CALLS)}""")


def writes(call):
    """Whether a call opens, makes or replaces a file by itself."""
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    if name == "open":
        texts = [a.value for a in [*call.args, *(k.value for k in call.keywords)] if is_text(a)]
        flags = {getattr(node, "attr", "") for node in ast.walk(call)}
        return any(set(t) <= set("rwxab+t") and set(t) & set("wxa") for t in texts) or bool(
            flags & {"O_WRONLY", "O_RDWR", "O_CREAT"}
        )
    if name == "to_csv" and not call.args and "path_or_buf" not in {k.arg for k in call.keywords}:
        return False  # it returns the text
    of = getattr(getattr(call.func, "value", None), "id", "")
    return name in WRITING_CALLS or (of, name) == ("os", "replace")


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_every_file_is_written_by_this_one_helper():
    found = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if _MAY_WRITE.search(text := path.read_text("utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and writes(node)
    }
    assert found == WRITERS.keys()
