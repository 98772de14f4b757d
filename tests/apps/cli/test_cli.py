import re
import sys
from types import ModuleType

import numpy as np
import pytest

pytest.importorskip("typer")
pytest.importorskip("rich")

from typer.testing import CliRunner

from dipedl import __version__, density
from dipedl.apps.cli import app as cli_app
from dipedl.apps.cli.app import app


def invoke(*arguments):
    return CliRunner().invoke(app, [str(a) for a in arguments])


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


class Stopped(ModuleType):
    """A module that Ctrl-C stops while it is loaded."""

    def __getattr__(self, name):
        raise KeyboardInterrupt


def test_main_in_this_process(monkeypatch, capsys):
    from dipedl.apps import cli

    monkeypatch.setattr(sys, "argv", ["dipedl", "--version"])
    with pytest.raises(SystemExit) as end:
        cli.main()
    assert end.value.code == 0 and capsys.readouterr().out == f"dipedl {__version__}\n"
    monkeypatch.setitem(sys.modules, "dipedl.apps.cli.app", None)
    with pytest.raises(ImportError, match=r"dipedl\.apps\.cli\.app"):
        cli.main()
    monkeypatch.setitem(sys.modules, "dipedl.apps.cli.app", Stopped("app"))
    with pytest.raises(SystemExit) as end:
        cli.main()
    told = capsys.readouterr()
    assert end.value.code == 130 and told.out == "" and "stopped" in told.err
    monkeypatch.delitem(sys.modules, "dipedl.apps.cli.app")
    for name in ("typer", "rich.box"):
        with monkeypatch.context() as patch, pytest.raises(SystemExit) as end:
            patch.setitem(sys.modules, name, None)
            cli.main()
        told = capsys.readouterr().err
        assert end.value.code == 2 and told.count("\n") == 1
        assert f"needs the package '{name[:4]}" in told and "pip install 'dipedl[cli]'" in told


def test_no_note_of_a_fit_advises_what_tables_do_not_have(tmp_path):
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    rows = pd.DataFrame(np.vstack([X, X[:20]]), columns=["a", "b"])
    rows.assign(y=np.where(np.arange(120) % 2, "p", "q")).to_csv(
        tmp_path / "copies.csv", index=False
    )
    words = ("--target", "y", "--model", "linear", "--false-alarms", "0.001")
    said = invoke("fit", tmp_path / "copies.csv", *words, "--out", tmp_path / "model.dipedl")
    assert said.exit_code == 0 and "drop duplicates" in said.output
    assert "needs at least 999 held-out inputs" in said.output
    assert not re.search(r"sample_weight|\bcv\b|false_alarm_rate", said.output)
