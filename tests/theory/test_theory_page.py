"""Every statement has a test, every test is on the page, and the page names no test in vain."""

import ast
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PAGE = HERE.parent.parent / "research" / "docs" / "theory.md"
#: What the paper numbers in sections 2 and 3 and in its proofs; one counter per section.
STATEMENTS = [
    *("proposition_2_2", "proposition_2_4", "proposition_2_5", "definition_2_6"),
    *("proposition_2_7", "theorem_2_9", "proposition_2_10", "proposition_2_12"),
    *("theorem_2_14", "theorem_2_15", "proposition_2_16", "definition_3_1", "theorem_3_2"),
    *("lemma_c_1", "proposition_c_3", "lemma_c_4"),
]


def claims_in(folder):
    """Names and docstrings of all test functions of the folder, but those of this file."""
    return {
        node.name: ast.get_docstring(node)
        for path in folder.glob("test_theory_*.py")
        if path.name != Path(__file__).name
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


def patterns_in(text):
    return re.findall(r"`(test_[a-z0-9_]+\*?)`", text)


@pytest.mark.parametrize("statement", STATEMENTS)
def test_every_statement_has_a_test_and_stands_on_the_page(statement):
    assert [name for name in claims_in(HERE) if name.startswith(f"test_{statement}_")]
    assert f"test_{statement}_*" in patterns_in(PAGE.read_text(encoding="utf-8"))


def unmatched(names, patterns):
    """Patterns that match no test, and tests that no pattern matches."""
    idle = [p for p in patterns if not any(fnmatch(name, p) for name in names)]
    return idle, [name for name in names if not any(fnmatch(name, p) for p in patterns)]


def test_page_and_tests_name_each_other():
    patterns = patterns_in(PAGE.read_text(encoding="utf-8"))
    assert unmatched(claims_in(HERE), patterns) == ([], [])
