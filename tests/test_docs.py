"""Each block of the README runs by itself, each page under docs top to bottom; links resolve."""

import ast
import doctest
import re
import sys
import types
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.base import clone

import dipedl
from played_pages import check, play

torch = pytest.importorskip("torch")
pytest.importorskip("torch")


ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
PAGES = [
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    # Played by research/tests/test_join_page.py, which makes its files.
    *sorted(set((ROOT / "research/docs").glob("*.md")) - {ROOT / "research/docs/join.md"}),
]
#: Modules with examples but for `dipedl.metrics`, whose tests ask for some in each file.
EXAMPLES = [
    pytest.param(path, marks=pytest.mark.slow) if path.parent.name == "baselines" else path
    for path in sorted((ROOT / "src/dipedl").rglob("*.py"))
    if ">>> " in path.read_text("utf-8") and path.parent.name != "metrics"
]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!http)([^)#]+)\)")


def run(code, name, monkeypatch):
    """Run a block of code as a module of its own, and return its names."""
    module = types.ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(compile(code, name, "exec"), module.__dict__)
    return module.__dict__


def blocks(page):
    return BLOCK.findall(page.read_text(encoding="utf-8"))


def own_name(page):
    return str(page.relative_to(ROOT))


def with_code():
    """Pages that have code; tutorials, networks and pages of many fits are slow."""
    long = "onnx diagnostics spectra-data training deploy serve spectra".split()
    long += "unknown-classes choose-a-density".split()
    for page in PAGES:
        if "```" in page.read_text(encoding="utf-8"):
            slow = [pytest.mark.slow] * (page.stem in long or page.parent.name == "tutorials")
            yield pytest.param(page, id=own_name(page), marks=slow)


@pytest.mark.parametrize("page", with_code())
def test_code_of_a_page_runs_top_to_bottom(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Other pages speak of files that are not there.
    shell = page.parent.name == "tutorials" or page.stem == "retrain"
    play(page.read_text(encoding="utf-8"), f"page_{page.stem}", monkeypatch, shell)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_examples_of_docstrings_run(path):
    name = ".".join(path.relative_to(ROOT / "src").with_suffix("").parts)
    assert doctest.testmod(import_module(name)).failed == 0


def test_a_page_must_show_what_is_printed():
    check("a 1.20\n...\nb 7", "a  1.21\nmore\nlines\nb 7\n", "")
    for shown, printed in (("a 1.20", "a 1.30"), ("a\nb", "a\nmore\nb"), ("a", "a b")):
        with pytest.raises(AssertionError, match="the page shows"):
            check(shown, printed, "")


def test_links_lead_somewhere():
    links = ((page, LINK.findall(page.read_text(encoding="utf-8"))) for page in [README, *PAGES])
    missing = [(own_name(p), t) for p, found in links for t in found if not (p.parent / t).exists()]
    assert missing == []


@pytest.mark.slow
def test_first_block_of_the_readme_gives_the_table_beside_it(monkeypatch):
    """Flagged and mean confidence on the unknown digits, at our rate of false alarms."""
    names = run(blocks(README)[0], "readme_0", monkeypatch)
    clf, data = names["clf"], names["data"]
    known, unknown = data.X_test, data.ood["held_out"]
    rate = np.mean(clf.predict_ood(known) == -1)
    alone = clone(clf.estimator).fit(data.X_train, data.y_train)
    limit = np.quantile(entropy(alone.predict_proba(known), axis=1), 1 - rate)
    by_entropy = entropy(alone.predict_proba(unknown), axis=1) > limit
    by_us = clf.predict_ood(unknown) == -1
    flagged, ours = by_entropy.mean(), by_us.mean()
    table = README.read_text(encoding="utf-8")
    stated = re.search(r"\| (\d+) unknown digits.*?(\d+) % of the known ones", table)
    assert int(stated[1]) == len(unknown)
    assert int(stated[2]) == pytest.approx(100 * rate, abs=1)
    assert ours > flagged + 0.1, "the example must show a clear gain"
    for who, share, model in (("its entropy", flagged, alone), ("`DIPClassifier`", ours, clf)):
        row = re.search(rf"{who} \| (\d+) % \| \.(\d+) \|", table)
        confidence = model.predict_proba(unknown).max(axis=1).mean()
        # the last digits of the density depend on machine and versions
        assert [int(cell) for cell in row.groups()] == pytest.approx(
            [100 * share, 100 * confidence], abs=2
        )
    # the picture of the front page: examples/unknown_digits.py
    shown = np.linspace(0, len(unknown) - 1, 24).astype(int)
    front = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    stated = re.search(r"Of 24 unknown .*? flags (\d+) by its entropy, .*? (\d+);", front)
    drawn = [by_entropy[shown].sum(), by_us[shown].sum()]
    assert [int(n) for n in stated.groups()] == pytest.approx(drawn, abs=1)


@pytest.mark.slow
def test_the_other_blocks_of_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = [run(code, "readme", monkeypatch) for code in blocks(README)[1:]]
    network = names[-1]
    share = np.mean(network["model"].predict_ood(shaped(network["unknown"])).numpy() == -1)
    stated = re.search(r"\((\d+) to (\d+) % by the kind", README.read_text(encoding="utf-8"))
    low, high = map(int, stated.groups())
    assert low - 1 <= 100 * share <= high + 1
    assert (tmp_path / "digits.onnx").exists()


def shaped(images):
    return torch.tensor(images).reshape(-1, 1, 28, 28)


DOCS = ROOT / "docs"


def test_reference_has_every_package_with_public_names():
    """Check examples; the build of the site checks that every public name has a page."""
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
