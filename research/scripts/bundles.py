"""Data sets as a few files of limited size, to carry to a machine without a network.

    python scripts/bundles.py pack cifar10 --profile gpu --out bundles --limit-mb 60
    python scripts/bundles.py unpack bundles --data data

A bundle is a tar file with pieces of the official files, packed without loss, and a list of them.
Bundles may be unpacked one at a time. When all pieces of a file are there, the file is put together
and must have the official checksum, as if it had been downloaded.
"""

from __future__ import annotations

import argparse
import hashlib
import io
import json
import os
import sys
import tarfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pixel_codec import decoded, encoded

from dipedl_bench.datasets.files import fetch
from dipedl_bench.names import refuse_unknown
from dipedl_bench.spec.suite import load_suite
from dipedl_bench.writing import write_file

#: Files of each data set and OOD set, as their loaders ask for them.
FILES_OF: dict[str, tuple[str, ...]] = {
    "mnist": tuple(
        f"mnist/{part}-ubyte.gz"
        for part in (
            "train-images-idx3",
            "train-labels-idx1",
            "t10k-images-idx3",
            "t10k-labels-idx1",
        )
    ),
    "kmnist": ("kmnist/t10k-images-idx3-ubyte.gz", "kmnist/t10k-labels-idx1-ubyte.gz"),
    "omniglot": ("omniglot/images_evaluation.zip",),
    "omniglot_inverted": ("omniglot/images_evaluation.zip",),
    "cifar10": (*(f"cifar10/data_batch_{i}" for i in range(1, 6)), "cifar10/test_batch"),
    "cifar100": ("cifar100/meta", "cifar100/test"),
    "svhn": ("svhn/test_32x32.mat",),
    "gtsrb": ("gtsrb/gtsrb_test_32x32.webp", "gtsrb/labels.npy"),
}
_LIST = "bundle.json"
_MIB = 2**20
#: Room for the list and for what a tar file adds to each of its members.
_SLACK = 64 * 1024
_IMAGE = 3 * 32 * 32
#: Images in a pickle of CIFAR.
_COUNTS = (10_000, 50_000)
_PARTS = ".parts"
_MOST_PARTS = 10_000

DataDir = str | os.PathLike[str] | None
Say = Callable[[str], None]


@dataclass(frozen=True)
class Piece:
    """A part of a packed file, and its checksum."""

    file: str
    part: int
    parts: int
    sha256: str

    def __post_init__(self) -> None:
        # The list of a bundle may come from anywhere, and these make the name of a file.
        if type(self.part) is not int or type(self.parts) is not int or type(self.file) is not str:
            raise TypeError(f"a piece must have a file and two numbers, got {self}")
        if not 0 <= self.part < self.parts <= _MOST_PARTS:
            raise ValueError(f"{self.file} has no piece {self.part} of {self.parts}")

    @property
    def member(self) -> str:
        """Its name in the bundle, and while the others are awaited."""
        return f"{self.file.replace('/', '__')}.{self.part}"


def pack(
    sets: Iterable[str],
    out: str | os.PathLike[str],
    *,
    data_dir: DataDir = None,
    limit_mb: float = 60.0,
    name: str = "data",
) -> list[Path]:
    """Write ``<name>.1.tar``, ``<name>.2.tar``, ... of at most `limit_mb` MiB each.

    `sets` are names out of `FILES_OF`; `data_dir` is the folder of the data sets (default: that of
    their loaders). ValueError if a set is unknown or the limit too small; FileNotFoundError if a
    file is missing.
    """
    if not limit_mb >= 1:
        raise ValueError(f"limit_mb must be at least 1 (MiB), got {limit_mb!r}")
    room = int(limit_mb * _MIB) - _SLACK
    files = list(dict.fromkeys(file for known in sets for file in _files_of(known)))
    pieces = [piece for file in files for piece in _pieces(file, data_dir, room)]
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for number, held in enumerate(_by_room(pieces, room), start=1):
        path = folder / f"{name}.{number}.tar"
        write_file(path, _tar(held))
        written.append(path)
    return written


def unpack(
    bundles: Iterable[str | os.PathLike[str]],
    data_dir: str | os.PathLike[str],
    say: Say = lambda text: None,
) -> list[str]:
    """Put the official files in bundles together; returns their names.

    Bundles may come one at a time: pieces wait in the folder until the rest of their file is there.
    `say` gets a line of text for each file. ValueError if a bundle is damaged or none, or a file
    does not have its official checksum.
    """
    folder, made = Path(data_dir), []
    for bundle in bundles:
        for piece, data in _read(Path(bundle)):
            waiting = folder / _PARTS / piece.member
            waiting.parent.mkdir(parents=True, exist_ok=True)
            write_file(waiting, data)
            if _join(piece, folder):
                made.append(piece.file)
                say(f"{piece.file}: its checksum is the official one")
    if (folder / _PARTS).is_dir() and not any((folder / _PARTS).iterdir()):
        (folder / _PARTS).rmdir()
    return made


def _files_of(name: str) -> tuple[str, ...]:
    refuse_unknown("data set", [name], FILES_OF)
    return FILES_OF[name]


def _pieces(file: str, data_dir: DataDir, room: int) -> Iterator[tuple[Piece, bytes]]:
    packed = _packed(fetch(file, data_dir).read_bytes())
    cuts = [packed[start : start + room] for start in range(0, len(packed), room)]
    for i, data in enumerate(cuts):
        yield Piece(file, i, len(cuts), hashlib.sha256(data).hexdigest()), data


def _by_room(pieces: Iterable[tuple[Piece, bytes]], room: int) -> list[list[tuple[Piece, bytes]]]:
    """Pieces in as few bundles as first-fit finds, the large ones first."""
    bundles: list[list[tuple[Piece, bytes]]] = []
    for piece in sorted(pieces, key=lambda piece: -len(piece[1])):
        fits = (b for b in bundles if sum(len(data) for _, data in b) + len(piece[1]) <= room)
        found = next(fits, None)
        if found is None:
            bundles.append([piece])
        else:
            found.append(piece)
    return bundles


def _tar(pieces: list[tuple[Piece, bytes]]) -> bytes:
    listed = json.dumps({"pieces": [asdict(piece) for piece, _ in pieces]}).encode()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, data in [(_LIST, listed), *((piece.member, data) for piece, data in pieces)]:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def _read(path: Path) -> Iterator[tuple[Piece, bytes]]:
    """Pieces of a bundle, their checksums verified; names come from its list alone."""
    try:
        with tarfile.open(path) as tar:
            listed = json.loads(_member(tar, _LIST))
            for entry in listed["pieces"]:
                piece = Piece(**entry)
                data = _member(tar, piece.member)
                known = piece.file in {file for files in FILES_OF.values() for file in files}
                if not known or hashlib.sha256(data).hexdigest() != piece.sha256:
                    raise ValueError(f"its piece {piece.member} has another checksum")
                yield piece, data
    except (tarfile.TarError, ValueError, LookupError, TypeError, EOFError) as error:
        raise ValueError(
            f"{str(path)!r} must be a whole bundle of `scripts/bundles.py pack`, got: {error}; "
            "copy it again"
        ) from error


def _member(tar: tarfile.TarFile, name: str) -> bytes:
    stream = tar.extractfile(name)
    if stream is None:
        raise ValueError(f"{name} is no file")
    return stream.read()


def _join(piece: Piece, folder: Path) -> bool:
    """Make the file if all of its pieces are there."""
    parts = [
        folder / _PARTS / Piece(piece.file, i, piece.parts, "").member for i in range(piece.parts)
    ]
    if not all(part.exists() for part in parts):
        return False
    # Beside the pieces until its official checksum is known: a good file is there already, perhaps.
    with TemporaryDirectory(dir=folder / _PARTS) as beside:
        joined, path = Path(beside, piece.file), folder / piece.file
        for place in (joined, path):
            place.parent.mkdir(parents=True, exist_ok=True)
        packed = b"".join(part.read_bytes() for part in parts)
        try:
            write_file(joined, _unpacked(packed))
        except (zlib.error, KeyError, TypeError, IndexError) as error:
            raise ValueError(
                f"the pieces of {piece.file} are damaged ({error}); pack again"
            ) from error
        fetch(piece.file, Path(beside))
        joined.replace(path)
    for part in parts:
        part.unlink()
    return True


def _packed(data: bytes) -> bytes:
    """A head of one line of JSON, and what it says: pixels, and what is around them."""
    start, size = _pixels(data)
    around = data[:start] + data[start + size :]
    head: dict[str, Any] = {"start": start, "pixels": size, "around": len(around)}
    blocks = [zlib.compress(around, 6), encoded(data[start : start + size]) if size else b""]
    head["blocks"] = [len(block) for block in blocks]
    return json.dumps(head).encode() + b"\n" + b"".join(blocks)


def _unpacked(packed: bytes) -> bytes:
    line, _, rest = packed.partition(b"\n")
    head = json.loads(line)
    cut, start = head["blocks"][0], head["start"]
    around = zlib.decompress(rest[:cut])
    pixels = decoded(rest[cut:]) if head["pixels"] else b""
    return around[:start] + pixels + around[start:]


def _pixels(data: bytes) -> tuple[int, int]:
    """Where the images of one of CIFAR's pickles lie in it, and their size; 0, 0 in other files.

    They are one long string, which a pickle begins by the letter T and its length.
    """
    for n in _COUNTS:
        size = n * _IMAGE
        at = data.find(b"T" + size.to_bytes(4, "little"))
        if at >= 0:
            return at + 5, size
    return 0, 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True)
    packing = commands.add_parser("pack", help="write the data of a profile as bundles")
    packing.add_argument("suite")
    packing.add_argument("--profile", default="cpu")
    packing.add_argument("--out", type=Path, required=True)
    packing.add_argument("--data", type=Path, help="default: $DIPEDL_DATA, else downloaded")
    packing.add_argument("--limit-mb", type=float, default=60.0)
    packing.set_defaults(run=_pack)
    unpacking = commands.add_parser("unpack", help="put the official files together")
    unpacking.add_argument("bundles", nargs="+", type=Path, help="bundles, or folders of them")
    unpacking.add_argument("--data", type=Path, required=True)
    unpacking.set_defaults(run=_unpack)
    given = parser.parse_args(arguments)
    try:
        given.run(given)
    except (ValueError, ImportError, OSError) as error:
        print(f"bundles: {error}", file=sys.stderr)
        return 2
    return 0


def _pack(given: argparse.Namespace) -> None:
    sets = _sets(given.suite, given.profile)
    written = pack(
        sets, given.out, data_dir=given.data, limit_mb=given.limit_mb, name=given.profile
    )
    for path in written:
        print(f"{path}: {path.stat().st_size / _MIB:.1f} MiB")


def _unpack(given: argparse.Namespace) -> None:
    made = unpack(_bundles(given.bundles), given.data, print)
    waiting = len(list((given.data / _PARTS).glob("*")))
    more = f"; {waiting} pieces wait for the rest of their file" if waiting else ""
    print(f"{len(made)} files in {given.data}{more}")


def _sets(suite: str, profile: str) -> list[str]:
    """Data set and OOD sets of a profile that come in files."""
    loaded = load_suite(suite)
    setting = loaded.profile(profile)
    if setting.dataset not in FILES_OF:
        raise ValueError(
            f"profile {profile!r} of {suite!r} needs no files: its images come with the package; "
            "name another with --profile"
        )
    return [setting.dataset, *loaded.ood_of(setting)]


def _bundles(given: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in given:
        inside = sorted(path.glob("*.tar")) if path.is_dir() else [path]
        if not inside:
            raise FileNotFoundError(f"no bundle (*.tar) in {str(path)!r}; make some with pack")
        found += inside
    return found


if __name__ == "__main__":
    sys.exit(main())
