"""The measures of the house, read from the source alone: sizes of files, functions and folders."""

import ast
from pathlib import Path

import dipedl

ROOT = Path(dipedl.__file__).parent
TREES = {path.relative_to(ROOT): ast.parse(path.read_text("utf-8")) for path in ROOT.rglob("*.py")}
MOST_LINES, MOST_LINES_P90, MOST_MODULES, MOST_AT_THE_TOP = 350, 17, 14, 10
#: In the top folder, but neither a module of the core nor for users.
ENTRY_POINTS = {"__init__.py", "__main__.py"}


def lines(path):
    return len((ROOT / path).read_text("utf-8").splitlines())


def body_lengths(tree):
    """Lines of the body of each function, its docstring left out."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) is not None else node.body
            yield body[-1].end_lineno - body[0].lineno + 1 if body else 0


def test_files_are_short():
    assert {str(p): lines(p) for p in TREES if lines(p) > MOST_LINES} == {}


def test_functions_are_short():
    lengths = sorted(n for tree in TREES.values() for n in body_lengths(tree))
    assert lengths[int(0.9 * len(lengths))] <= MOST_LINES_P90


def test_no_folder_is_crowded():
    modules = {}
    for path in TREES:
        if path.name != "__init__.py":
            modules.setdefault(str(path.parent), []).append(path.name)
    crowded = {name: len(found) for name, found in modules.items() if len(found) > MOST_MODULES}
    assert crowded == {}


def test_few_modules_at_the_top():
    top = {path.name for path in TREES if len(path.parts) == 1} - ENTRY_POINTS
    assert len(top) <= MOST_AT_THE_TOP, sorted(top)
