"""Values as text: in cells of CSV, in a line of a terminal, in JSON, for readers."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

#: Also behind blanks, which some spreadsheets leave out; a tab or the end of a line at the start.
_FORMULA = re.compile(r"\s*[=+\-@]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?[\d.,]*\d(?:[eE][+-]?\d+)?%?")


def cell(text: str) -> str:
    """Return a text, behind an apostrophe where a spreadsheet could run it; numbers as they are.

    References
    ----------
    .. [1] OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text.strip(" ")) else text


def printable_name(name: str) -> str:
    """Return the name of a file with a backslash and digits for each byte that is no UTF-8."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def one_line(text: str) -> str:
    r"""Return a text without what could break a line or drive a terminal: such as ``\x1b``.

    So are the bytes of a file's name that are no UTF-8.
    """
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in printable_name(text))


def probability_names(classes: Sequence[str]) -> list[str]:
    """Return a name for the column of each class: p_ and the class.

    That of a class called "value" ends in _, as p_value is the column of p-values.
    """
    names = [f"p_{name}" for name in classes]
    if "p_value" in names:
        other = "p_value_"
        while other in names:
            other += "_"
        names[names.index("p_value")] = other
    return names


def error_text(error: BaseException) -> str:
    """Return the message of an error, without quotes of a KeyError or the number of an OSError."""
    if isinstance(error, OSError) and error.strerror and error.filename is None:
        return error.strerror
    return str(error.args[0] if isinstance(error, LookupError) and error.args else error)


def plain(value: Any) -> Any:
    """Return values that ``json.dump`` takes: lists for tuples, text for what is not finite."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def plain_labels(labels: np.ndarray) -> list[Any]:
    """Class labels (k,) as JSON has them; those that it has not, such as dates, as texts.

    Examples
    --------
    >>> plain_labels(np.array([1, 2])), plain_labels(np.array(["2026-01-31"], "datetime64[ns]"))
    ([1, 2], ['2026-01-31T00:00:00.000000000'])
    """
    if labels.dtype.kind in "biufU":
        return list(labels.tolist())
    return [str(label) for label in labels]


def percent(share: float) -> str:
    """Return a share in percent, two digits below 10 %; one that is not 0 or 1 is not said to be.

    Examples
    --------
    >>> [percent(share) for share in (0.0, 0.0004, 0.05, 0.034, 0.256, 0.997, 1.0)]
    ['0%', '<0.1%', '5%', '3.4%', '26%', '99.7%', '100%']
    """
    value = 100 * float(share)
    if 0 < value < 0.1:
        return "<0.1%"
    if 99 < value < 100:
        return f"{min(value, 99.9):.1f}%"
    return f"{value:.0f}%" if value >= 10 else f"{value:.2g}%"


def number_text(value: float) -> str:
    """Return four digits; whole numbers from 10,000 to ten million in full, as prices are read.

    Examples
    --------
    >>> number_text(3.14159), number_text(30900.0), number_text(3e8)
    ('3.142', '30900', '3e+08')
    """
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"
