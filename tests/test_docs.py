"""The README and the pages under docs are run, top to bottom; links lead somewhere."""

import re
import sys
import types
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!http)([^)#]+)\)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_code_runs(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = types.ModuleType(f"page_{page.stem}")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    for code in BLOCK.findall(page.read_text(encoding="utf-8")):
        exec(compile(code, page.name, "exec"), module.__dict__)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: p.name)
def test_links_lead_somewhere(page):
    targets = LINK.findall(page.read_text(encoding="utf-8"))
    missing = [t for t in targets if not (page.parent / t).exists()]
    assert not missing


def test_the_share_that_the_readme_states_is_what_comes_out():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    stated = int(re.search(r"(\d+) % of the 8s and 9s", text).group(1))
    namespace = {}
    exec(BLOCK.findall(text)[0], namespace)
    flagged = namespace["clf"].predict_ood(namespace["data"].ood["held_out"]) == -1
    assert round(100 * flagged.mean()) == stated
