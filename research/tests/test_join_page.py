"""The page on joining the comparison, played as a reader types it."""

import io
import re
import shlex
import sys
from contextlib import redirect_stdout
from pathlib import Path

from typer.testing import CliRunner

from dipedl_bench import load_rows
from dipedl_bench.commands.run import bench
from dipedl_bench.spec.plan import method_parts
from dipedl_bench.spec.suite import load_suite

PAGE = Path(__file__).parents[1] / "docs" / "join.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_from_an_empty_file_to_a_row(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    for module in ("my_scores", "my_network"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    names, printed, suites = {}, [], iter(("own.toml", "trained.toml", "mine.toml"))
    for kind, text in BLOCK.findall(PAGE.read_text("utf-8")):
        if kind == "python":
            if "class Margin" in text:
                Path("my_scores.py").write_text(text)
            if "def small" in text:
                Path("my_network.py").write_text(text)
            with redirect_stdout(io.StringIO()) as answer:
                exec(text, names)
        elif kind == "text":
            assert answer.getvalue() == text
        elif kind == "toml":
            Path(next(suites)).write_text(text)
        elif kind == "console":
            for line in text.splitlines():
                program, *arguments = shlex.split(line.removeprefix("$ "))
                assert program == "dipedl-bench"
                done = CliRunner().invoke(bench, arguments)
                assert done.exit_code == 0, done.output
                assert "Warning" not in done.output and "turned round" not in done.output
                printed.append(done.stdout)
    scored, imported, of_arrays, table, ran, own, _, margin, trained = printed
    lines = [line.split() for line in scored.splitlines()]
    marked = {line[2] for line in lines if "→" in line}
    assert marked == {"Margin", "max-softmax-calibration", "ddu-calibration"}
    assert max(map(len, scored.splitlines())) <= 100
    aurocs = [float(line[-3]) for line in lines if "re-edl" in line or "energy" in line]
    assert aurocs == sorted(aurocs, reverse=True) and len(aurocs) == 2
    assert "→  1  mine" in imported and "| My model |" in table
    assert {line.split()[2] for line in of_arrays.splitlines() if "→" in line} == {"ddu", "Margin"}
    assert "| Margin" in table and "3 new rows" in trained
    assert float(re.search(r" knn-calibration (?: +\S+){3} +(\S+)", margin)[1]) > 0.9
    assert "3 new rows" in ran and "| kNN distance |" in own
    assert re.search(r"→ +\d  Margin ", margin) and " dip-edl-default " in margin
    rows = {row["method"]: row["metrics"] for row in load_rows("own", out="results")}
    assert rows["max-softmax"]["accuracy"] > 0.9 and rows["knn"]["auroc/bright"] > 0.9
    rows = {row["method"]: row["metrics"] for row in load_rows("trained", out="results")}
    assert rows["max-softmax"]["accuracy"] > 0.9
    suite = load_suite("mine.toml")
    parts = method_parts(suite, "smoke", suite.method_names("smoke"), "mine.toml")
    assert {part.name for part in parts} == {"mine", "energy"}
    for module in ("my_scores", "my_network"):
        sys.modules.pop(module, None)


def test_the_page_names_the_ood_sets_of_suites_with_published_rows():
    named = dict(re.findall(r"^\| `([\w-]+)` \| (`.*`) \|$", PAGE.read_text("utf-8"), re.MULTILINE))
    for suite in ("mnist", "cifar10", "cifar10-resnet", "spectra"):
        assert tuple(re.findall(r"`(\w+)`", named[suite])) == load_suite(suite).ood
