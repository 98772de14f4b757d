"""What importing loads, and that the contracts on imports (in pyproject.toml) can fail.

`make lint` checks the contracts: layers, circles, and what the core may import.
"""

import json
import os
import shutil
import subprocess
import sys
import tomllib
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import dipedl

grimp = pytest.importorskip("grimp")

ROOT = Path(dipedl.__file__).parent
CONFIGURATION = Path(__file__).parents[1] / "pyproject.toml"
HEAVY = {"sklearn", "scipy", "torch", "matplotlib", "pandas", "onnx"}
#: Folder or module -> code that breaks a contract there, and what `lint-imports` says about it.
BREACHES = {
    "maths/gamma.py": (
        "def f():\n    from ..classifier import DIPClassifier",
        "dipedl.maths is not allowed to import dipedl.classifier",
    ),
    "evidence/zscore.py": (
        "import torch",
        "dipedl.evidence is not allowed to import torch",
    ),
    "networks/device.py": (
        "def f():\n    from .training import train",
        "No cycles are allowed in dipedl.networks",
    ),
    "gaussians/moments.py": (
        "from ..inputs import check_weights",
        "dipedl.gaussians is not allowed to import dipedl.inputs",
    ),
    "surprise.py": ("x = 1", "surprise"),
}


#: `python -m dipedl --version`
COMMAND = """\
import contextlib, io, runpy
told = io.StringIO()
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(told):
    sys.argv = ["dipedl", "--version"]
    runpy.run_module("dipedl", run_name="__main__", alter_sys=True)
assert told.getvalue().split() == ["dipedl", dipedl.__version__]
"""
#: Python, each piece on lines of its own: after it a line of JSON, all modules loaded so far.
LISTINGS = "; ".join(
    f"import dipedl.{p}; dir(dipedl.{p}); dipedl.{p}.__all__"
    for p in ("density", "metrics", "datasets", "networks", "baselines", "pretrained")
)
STEPS = {
    "listing": f"import dipedl; dir(dipedl); dipedl.__version__; {LISTINGS}",
    "special": "import scipy.special",
    "suite": "from dipedl_bench import load_rows, load_suite; load_suite('mnist')",
    "linear": "import sklearn.linear_model",
    "estimators": "dipedl.DIPClassifier; dipedl.OODDetector; dipedl.density.GDADensity",
    "fit": "dipedl.DIPClassifier(cv=2).fit([[i, i % 3] for i in range(60)], [0, 1] * 30)",
    "command": COMMAND,
}


def output(code):
    """Return the output of a fresh interpreter."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def loaded():
    """Modules that an interpreter holds after each of the steps, in their order."""
    pytest.importorskip("pydantic")
    show = "print(json.dumps(list(sys.modules)))"
    lines = output("\n".join(["import json, sys", *(f"{s}\n{show}" for s in STEPS.values())]))
    return dict(zip(STEPS, map(set, map(json.loads, lines.splitlines())), strict=True))


def test_listing_loads_nothing_heavy(loaded):
    assert HEAVY.isdisjoint(loaded["listing"])


def test_the_names_of_a_suite_and_its_rows_do_not_wait_for_scikit_learn(loaded):
    assert HEAVY & loaded["suite"] == HEAVY & loaded["special"]


def test_the_estimators_load_scikit_learn_only(loaded):
    assert {"sklearn", "scipy"} <= HEAVY & loaded["estimators"] == HEAVY & loaded["linear"]


def test_the_classifier_loads_neither_files_nor_pages_nor_explanations(loaded):
    found = loaded["listing"] | loaded["fit"] - loaded["suite"]  # a suite has spectra
    ours = {name for name in found if name.startswith("dipedl.")}
    apart = {"apps", "explanation", "io", "plots"}
    assert "dipedl.classifier" in ours
    assert apart.isdisjoint(name.split(".")[1] for name in ours)
    assert "dipedl.density.streaming" not in ours


def test_the_package_is_a_command_and_loads_no_server(loaded):
    assert "fastapi" not in loaded["command"] and "typer" in loaded["command"]


def test_the_command_waits_for_no_estimator():
    code = "import sys, dipedl.apps.cli.app; print(*sys.modules)"
    assert {"sklearn", "scipy", "pandas"}.isdisjoint(output(code).split())


def ignored_imports():
    """Imports that the contract on circles ignores: methods of one line that import lazily."""
    with CONFIGURATION.open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    (circles,) = (c for c in contracts if c["type"] == "acyclic_siblings")
    return [edge.split(" -> ") for edge in circles["ignore_imports"]]


def circle(package):
    """A circle of modules of a package, its `__init__` files included; None if there is none."""
    graph = grimp.build_graph(package, cache_dir=None)
    for lazy in ignored_imports() if package == "dipedl" else ():
        graph.remove_import(importer=lazy[0], imported=lazy[1])
    try:
        TopologicalSorter(
            {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
        ).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_circle_of_modules():
    """The contract compares siblings; this compares a package with its own modules too."""
    assert circle("dipedl") is None


def lint(folder):
    """Exit status and words of `lint-imports` on the package in a folder."""
    code = "import sys; from importlinter.cli import lint_imports_command as lint; sys.exit(lint())"
    out = subprocess.run(
        [sys.executable, "-c", code, "--config", str(CONFIGURATION), "--no-cache"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "200"},
    )
    return out.returncode, " ".join(out.stdout.split())


def test_contracts_can_fail(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__", "_mini")
    shutil.copytree(ROOT, tmp_path / "dipedl", ignore=ignored)
    (tmp_path / "dipedl_bench").mkdir()
    (tmp_path / "dipedl_bench" / "__init__.py").touch()
    for file, (code, _) in BREACHES.items():
        with (tmp_path / "dipedl" / file).open("a", encoding="utf-8") as text:
            text.write(f"\n{code}\n")
    status, said = lint(tmp_path)
    assert status == 1
    assert [message for _, message in BREACHES.values() if message not in said] == []
