import json
import os
import re
import subprocess
import sys
from dataclasses import replace

import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner

from dipedl import __version__, density
from dipedl.apps import demo
from dipedl.apps.cli import app as cli_app
from dipedl.apps.cli.app import app
from dipedl.apps.cli.demo import stage_display
from small_demo import linear_only

BLOCKED = "import sys; sys.modules[{name!r}] = None; from dipedl.apps.cli import main; main()"


def dipedl(*arguments, cwd=None, code=None, **environment):
    """Run the command in a process of its own; `code` stands in for the entry point."""
    start = ["-m", "dipedl"] if code is None else ["-c", code]
    return subprocess.run(
        [sys.executable, *start, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8", "COLUMNS": "80", **environment},
    )


@pytest.fixture
def small(monkeypatch, demo_run):
    """A finished demo in place of one that takes its time."""
    finished = linear_only(demo_run[0])

    def run(models, *, seed, progress):
        for stage in demo.stages(models):
            with progress(stage):
                pass
        return replace(finished, receipt=replace(finished.receipt, seed=seed))

    monkeypatch.setattr(demo, "run", run)


@pytest.fixture
def blank(small, monkeypatch):
    """And a report in which nothing is drawn."""
    from dipedl.apps.demo import report

    monkeypatch.setattr(report, "render", lambda result: "<!DOCTYPE html>")


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_version():
    done, in_here = dipedl("version"), invoke("--version")
    assert (done.returncode, done.stdout) == (0, f"dipedl {__version__}\n")
    assert (in_here.exit_code, in_here.stdout) == (0, f"dipedl {__version__}\n")


def test_help_is_shown_without_a_command():
    done = invoke()
    assert "densities" in done.output and "demo" in done.output


def test_info_lists_versions_and_what_is_missing(monkeypatch):
    found = cli_app.find_spec
    monkeypatch.setattr(cli_app, "find_spec", lambda name: None if name == "zuko" else found(name))
    done = invoke("info")
    assert done.exit_code == 0
    assert re.search(rf"^dipedl +{re.escape(__version__)}$", done.output, re.M)
    assert re.search(r"^missing +.*zuko: pip install 'dipedl\[flows\]'$", done.output, re.M)


def test_densities_are_those_of_the_folder(monkeypatch):
    done = invoke("densities")
    assert done.exit_code == 0
    for name in density.__all__:
        assert name in done.output
    monkeypatch.setattr(density, "__all__", ["FlowDensity"])
    missing = ImportError("no torch", name="torch")
    monkeypatch.setattr(
        cli_app, "getattr", lambda *_: (_ for _ in ()).throw(missing), raising=False
    )
    assert "pip install 'dipedl[torch]'" in " ".join(invoke("densities").output.split())


def test_without_the_extra_it_says_how_to_get_it():
    for name in ("typer", "rich"):
        done = dipedl("version", code=BLOCKED.format(name=name))
        assert done.returncode == 2
        assert done.stderr.count("\n") == 1
        assert f"needs the package '{name}" in done.stderr
        assert "pip install 'dipedl[cli]'" in done.stderr


def test_other_import_errors_are_not_hidden():
    done = dipedl("version", code=BLOCKED.format(name="dipedl.density"))
    assert done.returncode == 1 and "Traceback" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--models", "linear,tree"], "models must be names out of"),
        (["--models", ","], "got none"),
        (["--out", "no/such/report.html"], "no/such does not exist; create it"),
        (["--out", "."], "it is a folder; name a file in it"),
        (["--out", "numbers.json"], "--out must not end in .json"),
    ],
)
def test_mistakes_end_at_once_in_one_line(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "run", lambda *_, **__: pytest.fail("began to compute"))
    done = invoke("demo", *arguments)
    assert done.exit_code == 2
    assert message in done.stderr and done.stderr.count("\n") == 1 and not done.stdout
    assert list(tmp_path.iterdir()) == []


def test_a_path_that_cannot_be_written_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(demo, "run", lambda *_, **__: pytest.fail("began to compute"))
    (tmp_path / "report.json").write_text("{}")
    (tmp_path / "report.json").chmod(0o444)
    done = invoke("demo", "--out", tmp_path / "report.html")
    assert done.exit_code == 2
    assert done.stderr.startswith(f"dipedl: cannot save to {tmp_path}/report.json: it is read-only")


def test_a_model_whose_package_is_missing_is_refused(monkeypatch):
    from dipedl.apps.demo import models

    monkeypatch.setattr(models, "find_spec", lambda name: None)
    done = invoke("demo", "--models", "cnn")
    assert done.exit_code == 2 and "pip install 'dipedl[torch]'" in done.stderr


def test_demo_end_to_end(small, tmp_path):
    pytest.importorskip("matplotlib")
    out = tmp_path / "page.html"
    done = invoke("demo", "--out", out, "--models", "linear", "--seed", 3)
    assert done.exit_code == 0, done.output
    assert out.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    stored = json.loads((tmp_path / "page.json").read_text(encoding="utf-8"))
    assert stored["receipt"]["seed"] == 3
    steps = done.stderr.splitlines()
    assert [line.split()[0] for line in steps] == [f"[{i}/5]" for i in range(1, 6)]
    assert "draw report" in steps[-1]
    row = stored["rows"][0]
    assert f"{row['accuracy']:.3f}" in done.stdout
    assert f"{row['ood']['kmnist']['auroc']:.3f} [" in done.stdout
    assert all(len(line) <= 80 for line in done.stdout.splitlines() if "/" not in line)


def test_quiet_prints_the_result_only(blank, tmp_path):
    done = invoke("demo", "--quiet", "--out", tmp_path / "r.html", "--models", "linear")
    assert done.exit_code == 0 and done.stderr == ""
    assert "1,000 new digits" in done.stdout


def test_without_the_report_extra_the_table_is_still_printed(small, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "dipedl.apps.demo.report", None)
    done = invoke("demo", "--quiet", "--out", tmp_path / "r.html", "--models", "linear", "--open")
    assert done.exit_code == 0
    assert "AUROC" in done.stdout and "pip install 'dipedl[report]'" in done.stdout
    assert not (tmp_path / "r.html").exists() and (tmp_path / "r.json").exists()


def test_without_torch_it_says_so(blank, tmp_path, monkeypatch):
    from dipedl.apps.demo import models

    monkeypatch.setattr(models, "default_models", lambda: ("linear",))
    done = invoke("demo", "--quiet", "--out", tmp_path / "r.html")
    assert done.exit_code == 0
    assert "No CNN: it needs torch: pip install 'dipedl[torch]'" in done.stdout


def test_open_shows_the_report(blank, tmp_path, monkeypatch):
    opened = []
    monkeypatch.setattr("typer.launch", opened.append)
    out = tmp_path / "r.html"
    invoke("demo", "--quiet", "--out", out, "--models", "linear", "--open")
    assert opened == [out.resolve().as_uri()]


def test_a_full_disk_is_one_line_after_the_table(blank, tmp_path, monkeypatch):
    def full(self, path):
        raise OSError("No space left on device")

    monkeypatch.setattr(demo.DemoResult, "write_json", full)
    done = invoke("demo", "--quiet", "--out", tmp_path / "r.html", "--models", "linear")
    assert done.exit_code == 2
    assert done.stderr == "dipedl: No space left on device\n" and "AUROC" in done.stdout


@pytest.mark.parametrize("terminal", [True, False])
def test_stages_are_told_in_a_terminal_and_in_a_log(terminal, monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: terminal)
    monkeypatch.setenv("TERM", "xterm")
    progress = stage_display(["one", "two"], quiet=False)
    for stage in ("one", "two"):
        with progress(stage):
            pass
    written = capsys.readouterr().err
    assert ("\r[1/2] one ..." in written) == terminal
    assert re.findall(r"\[./2\] \w+ +0\.0 s\n", written) == [
        f"[{i}/2] {name:<18}   0.0 s\n" for i, name in ((1, "one"), (2, "two"))
    ]


def test_main_in_this_process(monkeypatch, capsys):
    from dipedl.apps import cli

    monkeypatch.setattr(sys, "argv", ["dipedl", "version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0 and capsys.readouterr().out == f"dipedl {__version__}\n"
    monkeypatch.setitem(sys.modules, "dipedl.apps.cli.app", None)
    with pytest.raises(ImportError, match=r"dipedl\.apps\.cli\.app"):
        cli.main()
    monkeypatch.delitem(sys.modules, "dipedl.apps.cli.app")
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 2 and "pip install 'dipedl[cli]'" in capsys.readouterr().err
