"""FITS files of spectra, damaged and forged at random: each is read or refused, whatever it holds.

``run(seed, tries)`` counts what became of them; all counts but "read" and "refused" must be 0.
"""

import gzip
import os
import tempfile
import time
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from dipedl.apps.spectra import Failure, read_paper_files, read_spectra
from fits_writers import write_lamost_new, write_lamost_old, write_paper, write_sdss

#: Seconds after which reading one file counts as a hang.
PATIENCE = 5.0
NUMBERS = [0, 1, -1, 2, 7, 8, 9, 32, 999, 1000, 2**31, 2**32, 10**7, 10**12, 2**63, 10**25, 10**80]
TEXTS = ["T", "F", "''", "'x'", "1E", "1E400", "NaN", "-inf", "", "'PE(9999)'", "'0E'", "'999999D'"]
KEYS = ["NAXIS", "NAXIS1", "NAXIS2", "BITPIX", "PCOUNT", "GCOUNT", "TFIELDS", "TFORM1", "TFORM2",
        "TTYPE1", "TTYPE3", "TSCAL1", "TZERO1", "TNULL4", "TDIM1", "THEAP", "BSCALE", "BZERO",
        "EXTEND", "XTENSION", "SIMPLE", "END", "GROUPS", "ZIMAGE", "COEFF0", "COEFF1", "SNRR", "Z",
        "CLASS", "EXTNAME", "CONTINUE", "HIERARCH"]  # fmt: skip


def run(seed: int, tries: int) -> dict[str, int]:
    """Read so many files; gives how many were read, refused, crashed, slow, talkative, wrong."""
    counts = Counter(dict.fromkeys(["read", "refused", "crashed", "slow", "warned", "wrong"], 0))
    with tempfile.TemporaryDirectory() as folder:
        whole = _whole_files(Path(folder))
        path = Path(folder, "a.fits")
        for number in range(tries):
            rng = np.random.default_rng([seed, number])
            name = sorted(whole)[rng.integers(len(whole))]
            content = _damaged(rng, whole[name])
            path.write_bytes(gzip.compress(content, 1) if rng.random() < 0.1 else content)
            counts.update(_read(path, many=name == "paper"))
    return dict(counts)


def _whole_files(folder: Path) -> dict[str, bytes]:
    writers = {"sdss": write_sdss, "lamost old": write_lamost_old, "lamost new": write_lamost_new}
    files = {name: write(folder / f"{name}.fits") for name, write in writers.items()}
    flux = np.random.default_rng(0).normal(9, 1, (3, 3000))
    files["paper"] = write_paper(folder / "paper.fits", flux, [0, 1, 2])
    return {name: path.read_bytes() for name, path in files.items()}


def _damaged(rng: np.random.Generator, whole: bytes) -> bytes:
    data = bytearray(whole)
    for _ in range(rng.integers(1, 5)):
        data = DAMAGES[rng.integers(len(DAMAGES))](rng, data)
    return bytes(data)


def _card_value(rng: np.random.Generator, data: bytearray) -> bytearray:
    """Another value of a card that is there."""
    key = KEYS[rng.integers(len(KEYS))].ljust(8).encode()
    places = [i for i in range(0, len(data), 80) if data[i : i + 8] == key]
    if places:
        _put(rng, data, places[rng.integers(len(places))], key)
    return data


def _any_card(rng: np.random.Generator, data: bytearray) -> bytearray:
    """A card of any key in place of another, most often in a header."""
    key = KEYS[rng.integers(len(KEYS))].ljust(8).encode()
    _put(rng, data, 80 * int(rng.integers(0, min(len(data) // 80, 150) or 1)), key)
    return data


def _put(rng: np.random.Generator, data: bytearray, place: int, key: bytes) -> None:
    values = [*map(str, NUMBERS), *TEXTS]
    data[place : place + 80] = key + f"= {values[rng.integers(len(values))]:>20}".encode()[
        :72
    ].ljust(72)


def _bits(rng: np.random.Generator, data: bytearray) -> bytearray:
    """Some bits flipped, half of the times near the beginning, where a header is."""
    end = len(data) if rng.random() < 0.5 else min(len(data), 12_000)
    for place in rng.integers(0, max(end, 1), rng.integers(1, 30)):
        if place < len(data):
            data[place] ^= 1 << int(rng.integers(8))
    return data


def _cut(rng: np.random.Generator, data: bytearray) -> bytearray:
    return data[: int(rng.integers(0, len(data) + 1))]


def _moved(rng: np.random.Generator, data: bytearray) -> bytearray:
    """A block of the file copied over, or in front of, another place."""
    size = int(rng.choice([80, 2880, 28800]))
    start, to = (int(rng.integers(0, max(len(data) // 80, 1))) * 80 for _ in range(2))
    piece = data[start : start + size]
    data[to : to + (size if rng.random() < 0.5 else 0)] = piece
    return data


def _numbers(rng: np.random.Generator, data: bytearray) -> bytearray:
    """Extreme numbers in the data."""
    start = int(rng.integers(0, len(data) + 1))
    extreme = rng.choice([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e-45, 0.0], 50).astype(">f4")
    data[start : start + extreme.nbytes] = extreme.tobytes()
    return data


DAMAGES = [_card_value, _card_value, _any_card, _bits, _cut, _moved, _numbers]


def _read(path: Path, many: bool) -> list[str]:
    """Read a file, and return the outcome."""
    start = time.process_time()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            ends = [_ended(path, many)]
        except Exception as error:
            if os.environ.get("FUZZ_RAISE"):
                path.rename(path.parent.parent / "dipedl-fuzz-crash.fits")
                raise
            ends = ["crashed" if not isinstance(error, AssertionError) else "wrong"]
    return ends + ["warned"] * bool(seen) + ["slow"] * (time.process_time() - start > PATIENCE)


def _ended(path: Path, many: bool) -> str:
    if many:
        try:
            spectra = read_paper_files(path)
        except ValueError as error:  # there is only this one file
            assert "none does" in str(error)
            return "refused"
    else:
        spectra = read_spectra(path)
        assert len(spectra) + len(spectra.failures) == 1
    assert all(
        isinstance(f, Failure) and f.file == str(path) and f.reason for f in spectra.failures
    )
    assert np.isfinite(spectra.flux).all() and (spectra.label < len(spectra.target_names)).all()
    return "read" if len(spectra) else "refused"
