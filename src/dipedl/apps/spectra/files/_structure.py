"""Sizes in the headers of a FITS file, checked before anything believes them."""

from __future__ import annotations

import math
import re
from typing import IO

_BLOCK, _CARD = 2880, 80
#: The standard allows as many axes of an image, and columns of a table.
_MOST_AXES = 999
#: Cards in all headers of a file; those of surveys have some hundred, and reading them takes time.
_MOST_CARDS = 36_000
#: Cards that say how long the data are.
_SIZES = re.compile(rb"BITPIX|NAXIS[0-9]*|TFIELDS|PCOUNT|GCOUNT")
_INTEGER = re.compile(rb"= *([+-]?[0-9]{1,18}) *(/|$)")


def check_structure(stream: IO[bytes], size: int) -> None:
    """Raise a ValueError unless a file of `size` bytes is a chain of HDUs that it has room for.

    A header that promises 10**12 axes keeps a reader busy for hours, and after one whose size is
    wrong data are read as headers. Zeros and blanks behind the last HDU are allowed.
    """
    cards_left = _MOST_CARDS
    place = 0
    while place < size:
        stream.seek(place)
        cards = _header(stream, place, cards_left)
        if not cards:
            return
        cards_left -= len(cards)
        header = -(-len(cards) * _CARD // _BLOCK) * _BLOCK
        data = -(-_data_size(cards, size) // _BLOCK) * _BLOCK
        place += header + data
        if place > size:
            raise ValueError(f"truncated: its headers promise {place} bytes, it has {size}")


def _header(stream: IO[bytes], place: int, most: int) -> list[bytes]:
    """The cards of a header up to END; none if nothing but padding is left."""
    cards: list[bytes] = []
    while len(cards) <= most:
        block = stream.read(_BLOCK)
        if not cards and not block.startswith(b"XTENSION=" if place else b"SIMPLE  ="):
            if place and not (block + stream.read()).strip(b"\0 "):
                return []
            raise ValueError(f"no header begins at byte {place}")
        for start in range(0, len(block), _CARD):
            cards.append(block[start : start + _CARD])
            if cards[-1].rstrip() == b"END":
                return cards
        if len(block) < _BLOCK:
            raise ValueError(f"the header at byte {place} breaks off")
    raise ValueError(f"its headers have more than {_MOST_CARDS} cards")


def _data_size(cards: list[bytes], size: int) -> int:
    """Bytes of the data behind a header, without padding."""
    said: dict[bytes, bytes] = {}
    for card in cards:
        name = card[:8].rstrip()
        if name in said and _SIZES.fullmatch(name):
            # Readers do not agree on which of two counts, and one reader takes now this, now that.
            raise ValueError(f"{name.decode()} occurs twice in a header")
        said.setdefault(name, card[8:])
    axes, columns = _integer(said, "NAXIS"), _integer(said, "TFIELDS", 0)
    for key, value in [("NAXIS", axes), ("TFIELDS", columns)]:
        if not 0 <= value <= _MOST_AXES:
            raise ValueError(f"{key} must be in 0..{_MOST_AXES}, got {value}")
    lengths = [_integer(said, f"NAXIS{axis}") for axis in range(1, axes + 1)]
    extra, groups = _integer(said, "PCOUNT", 0), _integer(said, "GCOUNT", 1)
    for key, value in [("NAXISn", max(lengths, default=0)), ("PCOUNT", extra), ("GCOUNT", groups)]:
        if value > size:
            raise ValueError(f"{key} is {value}, more than the {size} bytes of the file")
    if min([*lengths, extra, groups]) < 0:
        raise ValueError("its headers promise data of a negative size")
    pixels = math.prod(lengths) if lengths else 0
    return abs(_integer(said, "BITPIX")) // 8 * groups * (extra + pixels)


def _integer(said: dict[bytes, bytes], name: str, default: int | None = None) -> int:
    value = said.get(name.encode())
    if value is None and default is not None:
        return default
    found = _INTEGER.match(value or b"")
    if found is None:
        raise ValueError(f"{name} must be an integer, got {(value or b'nothing').strip()!r}")
    return int(found[1])
