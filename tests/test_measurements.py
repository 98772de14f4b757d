"""The published figures are those of the receipts."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture(autouse=True)
def its_neighbours_can_be_imported(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))


def load(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["measurements", "measurements-quality", "measurements-drift"])
def test_the_page_is_what_the_receipts_say(name):
    stale = "run: python benchmarks/tables.py"
    page = (ROOT / "docs" / "reference" / f"{name}.md").read_text(encoding="utf-8")
    assert load("tables").page(name) == page, stale


def test_the_comparison_is_what_its_receipt_says():
    stale = "run: python benchmarks/compare_tables.py"
    text = (ROOT / "docs" / "comparison.md").read_text(encoding="utf-8")
    assert load("compare_tables").page(text) == text, stale


def test_facts_of_the_comparison_answer_its_questions():
    """Each fact names a question; its answer and line are those that the receipt saw run."""
    tables = load("compare_tables")
    facts, seen = tables.facts(), tables.receipt("compare_libraries")["values"]["libraries"]
    for library in tables.NAMES:
        stated = {fact["about"]: (fact["answer"], fact["shows"]) for fact in facts[library]}
        ran = {about: (f["answer"], f["shows"]) for about, f in seen[library]["facts"].items()}
        assert stated.keys() <= facts["questions"].keys()
        assert stated == ran


def test_every_benchmark_of_the_page_has_a_receipt_with_what_makes_it_again():
    sys.modules.pop("receipt", None)
    for name in load("run").NAMES:
        row = load("tables").receipt(name)
        assert row["command"] == f"python benchmarks/{name}.py"
        assert {"config", "config_hash", "values", "versions", "device", "seconds"} <= set(row)


def test_the_page_on_evidence_names_the_inputs_that_the_guarantee_was_tried_on():
    values = load("tables").receipt("guarantee")["values"]
    assert values["all"]["violations"] == 0
    (page,) = (ROOT / "docs").rglob("evidence.md")
    said = f"of {values['all']['inputs']:,} inputs to {len(values) - 1} models"
    assert said in page.read_text(encoding="utf-8")
