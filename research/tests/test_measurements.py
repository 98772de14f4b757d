"""Pages of numbers are what the receipts say."""

import importlib.util
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))

import compare_worker  # noqa: E402
import harness  # noqa: E402
import write_pages  # noqa: E402


@pytest.mark.parametrize("name", write_pages.PAGES)
def test_the_page_is_what_the_receipts_say(name):
    text = write_pages.PAGES[name].read_text(encoding="utf-8")
    assert write_pages.page(name) == text, "run: python benchmarks/write_pages.py"


def test_the_table_of_the_fuzzers_is_that_of_the_last_run():
    path = ROOT.parent / "tests" / "fuzz" / "run.py"
    spec = importlib.util.spec_from_file_location("fuzz_run", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs/fuzzers.md").read_text(encoding="utf-8")
    assert module.table(harness.receipt("fuzz")).strip() in page


def test_facts_of_the_comparison_answer_its_questions():
    """Answer and line of each fact are those that the receipt saw run; our own lines run here."""
    facts = write_pages.FACTS
    seen = harness.receipt("compare_libraries")["values"]["libraries"]
    for library in write_pages.NAMES:
        stated = {fact["about"]: (fact["answer"], fact["shows"]) for fact in facts[library]}
        runs = seen[library]["facts"]
        if library == "dipedl":
            runs = compare_worker.run_facts(library)
        ran = {about: (f["answer"], f["shows"]) for about, f in runs.items()}
        assert stated.keys() <= facts["questions"].keys()
        assert stated == ran


def test_a_search_of_the_sources_knows_the_end_of_a_word():
    """In a line of facts.toml it is written as in a string that is not raw."""
    mentions = compare_worker.mentions
    assert mentions("dipedl", "class DIPModule\b") and not mentions("dipedl", "class DIPModul\b")


def test_a_receipt_goes_on_only_at_the_same_commit_without_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    for name in ("code.py", "results/x.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    if shutil.which("git") is None:
        pytest.skip("needs git")
    for command in (("init", "-q"), ("add", "."), (*who, "commit", "-qm", "all")):
        subprocess.run(["git", *command], cwd=tmp_path, check=True)
    harness.write("x", {"a": 1}, {"v": 2}, 3.0)
    assert harness.parts_of_receipt("x", {"a": 1}) == ({"v": 2}, 3.0)  # a result may have changed
    assert harness.parts_of_receipt("x", {"a": 2}) == ({}, 0.0)
    (tmp_path / "code.py").write_text("changed")
    harness.write("x", {"a": 1}, {"v": 2}, 3.0)
    assert harness.commit().endswith("-dirty") and harness.parts_of_receipt("x", {"a": 1}) == (
        {},
        0.0,
    )


def test_parts_are_kept_and_a_dry_run_writes_nothing(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(harness, "ROOT", tmp_path)
    monkeypatch.setattr(harness, "commit", lambda: "0123")
    ran = []

    def measure(n=1):
        return {name: lambda name=name: ran.append(name) or len(ran) for name in "ab"}

    monkeypatch.setattr(sys, "argv", ["x.py", "--dry"])
    harness.main("x.py", measure)
    assert ran == ["a", "b"] and not (tmp_path / "results").exists()
    harness.write("x", harness.constants_of(measure) | {"n": 1}, {"a": 7}, 1.0)
    monkeypatch.setattr(sys, "argv", ["x.py"])
    harness.main("x.py", measure)
    assert ran == ["a", "b", "b"] and harness.receipt("x")["values"] == {"a": 7, "b": 3}


def test_every_benchmark_of_the_page_has_a_receipt_with_what_makes_it_again():
    scripts = (ROOT / "benchmarks").glob("*.py")
    for name in (path.stem for path in scripts if "\nimport harness" in path.read_text("utf-8")):
        row = harness.receipt(name)
        assert row["command"] == f"python benchmarks/{name}.py"
        assert {"config", "config_hash", "values", "versions", "device", "seconds"} <= set(row)


def test_rows_of_spectra_are_those_that_their_kind_of_cpu_gave_before():
    receipt = json.loads((ROOT / "results" / "verify_spectra_other_cpu.json").read_text("utf-8"))
    lines = (ROOT / "results/bench/spectra/scarce/rows.jsonl").read_text("utf-8").splitlines()
    rows = {(row["method"], row["seed"]): row["metrics"] for row in map(json.loads, lines)}
    for before in receipt:
        metrics = rows[before["method"], before["seed"]]
        for name, of in before["metrics"].items():
            assert metrics[name] == pytest.approx(of["again"], abs=1e-6), name
