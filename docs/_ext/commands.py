"""Reference of the command line: a page per command, as Typer's own generator writes it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from written import write_folder

FOLDER = "reference/commands"
TYPER = [sys.executable, "-m", "typer", "dipedl.apps.cli.app", "utils", "docs", "--name", "dipedl"]


def pages() -> dict[str, str]:
    """Markdown of each command by its name, that of ``dipedl`` itself as "index"."""
    text = subprocess.run(TYPER, check=True, capture_output=True, text=True).stdout
    text = re.sub(r"^#(#+ `)", r"\1", text, flags=re.MULTILINE)  # each command heads a page
    head, *rest = re.split(r"^(?=# `dipedl )", text.partition("\n")[2], flags=re.MULTILINE)
    found = {page.split()[2].strip("`"): page for page in rest}
    contents = "\n".join(["```{toctree}", ":maxdepth: 1", "", *found, "```", ""])
    return {"index": f"# Commands\n{head.partition('**Commands**')[0]}{contents}", **found}


def write_pages(app: Sphinx, *_: Any) -> None:
    """Write all pages."""
    texts = {f"{name}.myst": text for name, text in pages().items()}
    write_folder(Path(app.srcdir, FOLDER), texts)


def setup(app: Sphinx) -> dict[str, Any]:
    """Write the pages before Sphinx looks for them."""
    app.connect("config-inited", write_pages)
    return {"parallel_read_safe": True}
