"""Files of the repository that pages link to: each becomes a page of the site.

A page links to ``../../tests/x.py`` so that the link works in the repository too. Here that file
is shown with its lines numbered, and each of its functions is a target. Where the name of a test,
or a pattern such as ``test_lemma_c_1_*``, stands in code font it leads to that function.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from written import write_page

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
#: Pages made of files beside this folder.
WHOLE = {
    "CHANGELOG.md": "reference/changelog.myst",
    "CONTRIBUTING.md": "contributing.myst",
}
LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
TEST = re.compile(r"(?<![\w\[])`(test_[a-z0-9_]+\*?)`")


def label(file: str, function: str) -> str:
    """Name of the target of a function."""
    return f"{file}-{function}".replace("/", "-").replace("_", "-").lower()


def functions(file: str) -> dict[str, int]:
    """Top-level functions and classes of a Python file, each with its first line."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.ClassDef)
    return {
        node.name: min([node.lineno, *(d.lineno for d in node.decorator_list)])
        for node in tree.body
        if isinstance(node, kinds)
    }


def shown(file: str) -> str:
    """The text of a file, cut before each function so that it can be linked to."""
    language = {".py": "python", ".md": "markdown"}.get(Path(file).suffix, "text")
    include = f".. literalinclude:: /{os.path.relpath(ROOT / file, DOCS)}\n"
    include += f"   :language: {language}\n"
    parts = []
    cuts = {"": 1, **(functions(file) if file.endswith(".py") else {})}
    ends = [line - 1 for line in list(cuts.values())[1:]] + [None]
    for (name, start), end in zip(cuts.items(), ends, strict=True):
        parts += [f".. _{label(file, name)}:\n"] if name else []
        parts += [f"{include}   :lines: {start}-{end or ''}\n   :lineno-match:\n"]
    return "\n".join(parts)


def page_of(name: str) -> str:
    """A page that shows a file, or the files of a folder one after the other."""
    path = ROOT / name
    inside = [p for p in sorted(path.iterdir()) if p.is_file()] if path.is_dir() else []
    text = f":orphan:\n\n{name}\n{'=' * len(name)}\n\n" + ("" if inside else shown(name))
    for file in inside:
        text += f"{file.name}\n{'-' * len(file.name)}\n\n{shown(str(file.relative_to(ROOT)))}\n"
    return text


def home(path: Path) -> str:
    """Page of the site for a file or folder of the repository, from the root of the site."""
    name = str(path.relative_to(ROOT))
    if name.startswith("examples/gallery/plot_"):
        return f"/gallery/{path.stem}.rst"
    if path.is_relative_to(DOCS):
        return f"/{path.relative_to(DOCS)}"
    return f"/{WHOLE.get(name, f'source/{name}.rst')}"


def linked(text: str, folder: Path) -> str:
    """The Markdown with links to files outside this folder led to their pages."""

    def page(match: re.Match[str]) -> str:
        return f"]({home((folder / match[1]).resolve())}{match[2] or ''})"

    return LINK.sub(page, text)


def outside(text: str, folder: Path) -> Iterator[str]:
    """Files and folders that the Markdown links to and that get a page of source code."""
    for target, _ in LINK.findall(text):
        path = (folder / target).resolve()
        if home(path).startswith("/source/"):
            yield str(path.relative_to(ROOT))


def with_tests_linked(text: str, files: list[str]) -> str:
    """The Markdown with the name of each test led to the first function it stands for."""
    homes = {name: file for file in files for name in functions(file)}

    def link(match: re.Match[str]) -> str:
        found = [name for name in homes if fnmatch(name, match[1])]
        return f"[{match[0]}](#{label(homes[found[0]], found[0])})" if found else match[0]

    return TEST.sub(link, text)


def write_pages(app: Sphinx, *_: Any) -> None:
    """Write the pages of files, and those of whole documents beside this folder."""
    texts = {p: p.read_text("utf-8") for p in DOCS.rglob("*.md") if "_build" not in p.parts}
    texts |= {ROOT / name: (ROOT / name).read_text("utf-8") for name in WHOLE}
    for file in sorted({f for page, text in texts.items() for f in outside(text, page.parent)}):
        write_page(Path(app.srcdir, "source", f"{file}.rst"), page_of(file))
    for name, page in WHOLE.items():
        write_page(Path(app.srcdir, page), linked(texts[ROOT / name], ROOT))


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links of a page of the repository, while Sphinx reads it."""
    page = Path(app.env.doc2path(docname))
    if page.suffix == ".md":
        tests = [f for f in outside(source[0], page.parent) if f.startswith("tests/")]
        source[0] = with_tests_linked(linked(source[0], page.parent), tests)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", write_pages)
    app.connect("source-read", read)
    return {"parallel_read_safe": True}
