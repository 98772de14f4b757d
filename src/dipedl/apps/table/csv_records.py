"""Records of a CSV file: fields as texts, numbers of rows, and which rows have another width."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from .errors import UserError
from .formats import Format, blank_lines, check_utf8, open_bytes

_BLOCK = 1 << 22
_NATIVE = {"gzip": "gzip", "bzip2": "bz2"}
#: What is wrong with a row whose last field is empty and has no name.
ENDS = " ends in a delimiter: delete it, or give the last column a name in the first line"
_SWALLOWED = "lines were read as part of it. Close or delete that quote"


@dataclass(frozen=True)
class Records:
    """The records of a file; an empty field is a missing value."""

    path: Path
    form: Format

    def open(self) -> Any:
        """The bytes of the file for `batches`, unpacked.

        Arrow reads ahead in a thread, which must not need Python: at exit it would abort the
        process.
        """
        packed = self.form.packed
        if packed and packed not in _NATIVE:
            return open_bytes(self.path, packed)
        source = pa.OSFile(os.fsencode(self.path))
        return pa.CompressedInputStream(source, _NATIVE[packed]) if packed else source

    def names(self) -> list[str]:
        """Names in the first line, as they are: two may be equal."""
        with self.open() as source:
            reader = self._reader(source, None, {})
            return [name.strip().lstrip("\ufeff") for name in reader.schema.names]

    def batches(self, source: Any, n: int, invalid: dict[int, str]) -> Iterator[Any]:
        """Rows of n texts, out of the opened file; `invalid` gets the reasons of other rows."""
        try:
            yield from self._reader(source, [f"f{i}" for i in range(n)], invalid)
        except pa.ArrowInvalid as error:
            if "UTF8" in str(error) and self.form.encoding == "utf-8":
                check_utf8(self.path, self.form.packed)
            if "straddling" not in str(error):
                raise
            raise UserError(
                f"{self.path} has a row of more than {_BLOCK >> 20} MB, as where a quote is never "
                "closed. Close or delete that quote, or write the table as Parquet"
            ) from error

    def _reader(self, source: Any, positions: list[str] | None, invalid: dict[int, str]) -> Any:
        blank = blank_lines(self.path, self.form)

        def refuse(row: Any) -> str:
            # Empty lines above the names are counted, and the line of names too.
            invalid[row.number - blank - 1] = _reason(row, self.form.delimiter)
            return "skip"

        return pa.csv.open_csv(
            source,
            read_options=pa.csv.ReadOptions(
                encoding=self.form.encoding,
                block_size=_BLOCK,
                column_names=positions,
                skip_rows=blank,
                skip_rows_after_names=0 if positions is None else 1,
                # With several threads the reader does not know the numbers of rows that it refuses.
                use_threads=False,
            ),
            parse_options=pa.csv.ParseOptions(
                delimiter=self.form.delimiter,
                newlines_in_values=True,
                invalid_row_handler=refuse,
            ),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(positions or (), pa.string()),
                null_values=[""],
                strings_can_be_null=True,
            ),
        )

    def check_closed(self, last: str, row: int) -> None:
        """UserError if the last field of a row, `last`, has run to the end of the file."""
        below = len(last.splitlines()) - 1
        if below > 0 and self._end().endswith(last):
            raise UserError(
                f"{self.path}: a quote opens in the last field of row {row} and is never closed: "
                f"the next {below:,} {_SWALLOWED}"
            )

    def _end(self) -> str:
        """The end of the text, of two blocks of bytes at most."""
        end = b""
        with open_bytes(self.path, self.form.packed) as stream:
            for block in iter(partial(stream.read, _BLOCK), b""):
                end = (end + block)[-2 * _BLOCK :]
        return end.decode(self.form.encoding, "ignore")


def _reason(row: Any, delimiter: str) -> str:
    """Why a row is refused, with the number of lines that an open quote takes with it."""
    text = str(row.text)
    below = len(text.splitlines()) - 1
    if below and text.count('"') % 2:
        return f"a quote opens in this row and is never closed: the next {below:,} {_SWALLOWED}"
    fields = f"{row.actual_columns} fields, where the first line has {row.expected_columns}"
    ends = text.endswith(delimiter) and row.actual_columns == row.expected_columns + 1
    return f"{fields}: {text[:60]!r}{ENDS if ends else ''}"


def numbered(last: int, n: int, left_out: Iterable[int]) -> tuple[np.ndarray, int]:
    """Numbers of n rows after row `last`, without those that were left out."""
    top = last + n
    skipped = sorted(r for r in left_out if r > last)
    for r in skipped:
        top += r <= top
    rows = np.setdiff1d(np.arange(last + 1, top + 1), skipped)
    return rows, top
