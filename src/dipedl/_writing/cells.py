"""Cells of CSV that no spreadsheet takes for a formula."""

from __future__ import annotations

import re

#: Also behind blanks, which some spreadsheets leave out; a tab or the end of a line at the start.
_FORMULA = re.compile(r"\s*[=+\-@]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?[\d.,]*\d(?:[eE][+-]?\d+)?%?")


def cell(text: str) -> str:
    """The text, behind an apostrophe where a spreadsheet could run it; numbers as they are.

    References
    ----------
    .. [1] OWASP, CSV Injection, https://owasp.org/www-community/attacks/CSV_Injection
    """
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text.strip(" ")) else text
