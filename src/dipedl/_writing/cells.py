"""Cells of CSV that no spreadsheet takes for a formula."""

from __future__ import annotations

import re

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")
_NUMBER = re.compile(r"[+-]?[\d.,]*\d(?:[eE][+-]?\d+)?%?")


def cell(text: str) -> str:
    """The text, behind an apostrophe where a spreadsheet could run it; numbers as they are.

    References
    ----------
    .. [1] OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
