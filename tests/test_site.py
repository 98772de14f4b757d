"""What can be said of the site unbuilt; `scripts/check_docs.py` looks at the built one."""

import ast
from pathlib import Path

import pytest

import dipedl

pytest.importorskip("torch")

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


def test_reference_has_every_package_with_public_names():
    """That every name of these packages has a page is checked where the site is built."""
    tree = ast.parse((DOCS / "_ext" / "public_names.py").read_text(encoding="utf-8"))
    described = next(
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.AnnAssign | ast.Assign) and "PACKAGES" in ast.unparse(node)
    )
    folders = Path(dipedl.__file__).parent.glob("*/__init__.py")
    names = {"protocols", *(path.parent.name for path in folders)} - {"writing"}
    packages = {name for name in names if hasattr(getattr(dipedl, name), "__all__")}
    inner = {name for name in described if name.count(".") == 2}
    assert set(described) - inner == {"dipedl", *(f"dipedl.{p}" for p in packages)}
