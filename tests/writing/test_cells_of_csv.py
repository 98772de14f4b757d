"""Texts that a spreadsheet would run, and numbers, which it may have."""

import pytest

from dipedl.writing.text import cell

FORMULAS = [
    "=1+1",
    "+1-2",
    "-cmd|' /C calc'!A0",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "-",
    "-1+1",
    "+-5",
    " =1",
    "  @SUM(A1)",
    " \t+1-2",
    "\u00a0-cmd|' /C calc'!A0",
    "\t5",
]
OTHERS = [
    "-5",
    "-1.5e-3",
    "+12",
    "-0,5",
    "-1,000.5",
    "-3%",
    "a=1",
    "'=1",
    "",
    " -5 ",
    "  a",
    " (=1)",
    "http://x",
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_becomes_text(text):
    assert cell(text) == f"'{text}"


@pytest.mark.parametrize("text", OTHERS)
def test_numbers_and_other_texts_are_as_they_were(text):
    assert cell(text) == text
