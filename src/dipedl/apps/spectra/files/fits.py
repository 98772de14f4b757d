"""Find and open FITS files; unusable ones are errors with a reason."""

from __future__ import annotations

import glob
import gzip
import io
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from ....plugins import optional
from ..spectra import Failure
from ._structure import check_structure

PathLike = str | os.PathLike[str]
ENDINGS = (".fits", ".fit", ".fits.gz", ".fit.gz")

#: Warnings of astropy for a truncated file, in its data or in a header.
_BROKEN_OFF = ".*(truncated|Error validating header)"
#: Bytes of a file of one spectrum, unpacked; those of surveys have a few million at most.
_MOST_BYTES = 100_000_000
#: How many times the packed size a file of many spectra may have; noise packs badly.
_MOST_RATIO = 20
#: Where the reason ends and astropy's advice begins.
_ADVICE = re.compile(r"[.] |, fix it first")


class UnusableError(ValueError):
    """A file, or one row of it, that cannot be used."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(str(failure))
        self.failure = failure


class LayoutError(ValueError):
    """Error of a file that lacks something; `opened` adds the name of the file."""


@contextmanager
def listed(failures: list[Failure], on_error: str) -> Iterator[None]:
    """Whatever the block cannot use is added to `failures`, or raised if `on_error` is "raise"."""
    try:
        yield
    except UnusableError as error:
        if on_error == "raise":
            raise
        failures.append(error.failure)


def fits_files(paths: PathLike | Iterable[PathLike]) -> list[Path]:
    """Files named by a folder (and the folders in it), a pattern, a file, or several of these."""
    given = [paths] if isinstance(paths, str | os.PathLike) else paths
    if not isinstance(given, Iterable):
        raise TypeError(
            f"paths must be a file, a folder, a pattern, or several of these, got {paths!r}"
        )
    given = list(given)
    found = [file for one in given for file in _expanded(Path(os.path.expanduser(one)))]
    if not found:
        raise FileNotFoundError(
            f"no FITS file ({', '.join(ENDINGS)}) in {[os.fspath(one) for one in given]}; "
            "name files, a folder that holds some, or a pattern such as 'plate*/spec-*.fits'"
        )
    return list(dict.fromkeys(found))


def stem(name: str) -> str:
    """Name of a file without the ending of a FITS file."""
    ending = next((e for e in ENDINGS if name.lower().endswith(e)), "")
    return name[: len(name) - len(ending)]


def _expanded(path: Path) -> list[Path]:
    if path.is_dir():
        inside = (p for p in path.rglob("[!.]*") if p.name.lower().endswith(ENDINGS))
        # a broken link is listed as a failure
        return sorted((p for p in inside if not p.is_dir()), key=_natural)
    if not path.exists() and glob.has_magic(str(path)):
        return sorted(map(Path, glob.glob(str(path), recursive=True)), key=_natural)
    if not path.exists() and not path.name.lower().endswith(ENDINGS):
        raise FileNotFoundError(f"there is no file or folder {str(path)!r}; check the spelling")
    return [path]


def _natural(path: Path) -> list[Any]:
    """Sort key of names in which 2 comes before 10; text and numbers alternate."""
    return [int(s) if s.isdecimal() else s for s in re.split(r"([0-9]+)", str(path))]


@contextmanager
def opened(path: Path, *, many: bool = False) -> Iterator[Any]:
    """The HDUs of a file; any problem raises an UnusableError that names the file.

    `many` says that it may hold many spectra: it may be large then, and is read bit by bit.
    """
    fits = optional("astropy.io.fits", "reading FITS files")
    with warnings.catch_warnings():
        # Most are of cards that nobody asks for; what is wrong with a spectrum is checked here.
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", message=_BROKEN_OFF)
        try:
            with (
                _content(path, many) as stream,
                # mapped if it is a file; tables of packed images have no spectra
                fits.open(stream, memmap=many, disable_image_compression=True) as hdus,
            ):
                yield hdus
        except UnusableError:
            raise
        except LayoutError as error:
            raise unusable(path, str(error)) from error
        except FileNotFoundError as error:
            raise unusable(path, "there is no such file") from error
        except MemoryError as error:
            raise unusable(path, "reading it takes more memory than there is") from error
        except Exception as error:
            # For a damaged header astropy raises nearly any exception, AttributeError included.
            said = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, AttributeError | TypeError):
                said = "astropy cannot read its headers"
            reason = _ADVICE.split(said)[0]
            raise unusable(path, f"damaged, or no FITS file: {reason}") from error


@contextmanager
def _content(path: Path, many: bool) -> Iterator[IO[bytes]]:
    """The bytes of a file, unpacked, of a size that its headers agree with.

    astropy would unpack whatever looks packed, to any size, and would read a truncated .gz as a
    file with fewer HDUs.
    """
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise LayoutError("it is no file but a folder, device, FIFO or socket")
    with open(path, "rb") as file:
        size, packed = os.fstat(file.fileno()).st_size, file.read(2) == b"\x1f\x8b"
        file.seek(0)
        most = max(_MOST_BYTES, _MOST_RATIO * size) if many else _MOST_BYTES
        if many and not packed:
            check_structure(file, size)
            file.seek(0)
            yield file
            return
        content = _bounded(gzip.open(file) if packed else file, most)
        check_structure(io.BytesIO(content), len(content))
        yield io.BytesIO(content)


def _bounded(stream: gzip.GzipFile | IO[bytes], most: int) -> bytes:
    content = stream.read(most + 1)
    if len(content) > most:
        raise LayoutError(f"it holds more than {most / 1e6:.0f} MB, which no such file does")
    return content


def unusable(path: Path, reason: str, row: int | None = None) -> UnusableError:
    """Return the error of a file, or of one of its rows."""
    return UnusableError(Failure(str(path), row, reason))
