"""Pages of numbers are what the receipts say."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dipedl_bench.running.verify import ACROSS

ROOT = Path(__file__).parent.parent
PAGES = sorted(path.stem for path in (ROOT / "docs").glob("measurements*.md"))


@pytest.fixture(autouse=True)
def its_neighbours_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_receipts_say(name):
    stale = "run: python benchmarks/tables.py"
    page = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert load("tables").page(name) == page, stale


def test_the_comparison_is_what_its_receipt_says():
    stale = "run: python benchmarks/compare_tables.py"
    text = (ROOT.parent / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert load("compare_tables").page(text) == text, stale


def test_tolerances_of_the_page_are_those_of_verify():
    page = (ROOT / "docs/published-rows.md").read_text(encoding="utf-8")
    stated = {}
    for names, tolerance in re.findall(r"^\| (`.*`) \| \.(\d+) \|$", page, re.MULTILINE):
        stated |= dict.fromkeys(re.findall(r"`(\w+?)(?:_<\w+>)?`", names), float(f"0.{tolerance}"))
    assert stated == ACROSS


def test_the_table_of_the_fuzzers_is_that_of_the_last_run():
    path = ROOT.parent / "tests" / "fuzz" / "run.py"
    spec = importlib.util.spec_from_file_location("fuzz_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT.parent / "docs/reference/reliability.md").read_text(encoding="utf-8")
    assert module.table(load("tables").receipt("fuzz")).strip() in page


def test_facts_of_the_comparison_answer_its_questions():
    """Answer and line of each fact are those that the receipt saw run; our own lines run here."""
    tables = load("compare_tables")
    facts, seen = tables.facts(), tables.receipt("compare_libraries")["values"]["libraries"]
    for library in tables.NAMES:
        stated = {fact["about"]: (fact["answer"], fact["shows"]) for fact in facts[library]}
        runs = seen[library]["facts"]
        if library == "dipedl":
            runs = load("compare_facts").facts_shown(library)
        ran = {about: (f["answer"], f["shows"]) for about, f in runs.items()}
        assert stated.keys() <= facts["questions"].keys()
        assert stated == ran


def test_a_search_of_the_sources_knows_the_end_of_a_word():
    """In a line of facts.toml it is written as in a string that is not raw."""
    mentions = load("compare_facts").mentions
    assert mentions("dipedl", "class DIPModule\b") and not mentions("dipedl", "class DIPModul\b")


def test_a_receipt_goes_on_only_at_the_same_commit_without_changes(tmp_path, monkeypatch):
    receipt = load("receipt")
    monkeypatch.setattr(receipt, "ROOT", tmp_path)
    for name in ("code.py", "results/x.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    if shutil.which("git") is None:
        pytest.skip("needs git")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "all")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    receipt.write("x", {"a": 1}, {"v": 2}, 3.0)
    assert receipt.begun("x", {"a": 1}) == ({"v": 2}, 3.0)  # a result may have changed
    assert receipt.begun("x", {"a": 2}) == ({}, 0.0)
    (tmp_path / "code.py").write_text("changed")
    receipt.write("x", {"a": 1}, {"v": 2}, 3.0)
    assert receipt.commit().endswith("-dirty") and receipt.begun("x", {"a": 1}) == ({}, 0.0)


def test_every_benchmark_of_the_page_has_a_receipt_with_what_makes_it_again():
    sys.modules.pop("receipt", None)
    for name in load("run").NAMES:
        row = load("tables").receipt(name)
        assert row["command"] == f"python benchmarks/{name}.py"
        assert {"config", "config_hash", "values", "versions", "device", "seconds"} <= set(row)
