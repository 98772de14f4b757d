"""The commands of docs/reference/command-line.md run as they stand, after the Python on it."""

import re
import shlex
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("matplotlib")

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "command-line.md"
BLOCK = re.compile(r"^```(python|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_commands_of_the_page_run(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, commands = {}, []
    for language, code in BLOCK.findall(PAGE.read_text(encoding="utf-8")):
        if language == "python":
            exec(compile(code, str(PAGE), "exec"), names)
            continue
        for line in code.splitlines():
            program, *arguments = shlex.split(line.removeprefix("$ "))
            done = run(*arguments)
            assert program == "dipedl" and done.exit_code == 0, (line, done.output)
            commands.append(arguments[0])
    assert set(commands) == {"check", "fit", "score", "explain", "inspect", "monitor", "report"}
    written = {"model.dipedl", "answers.csv", "report.html", "given.csv"}
    assert written <= {path.name for path in tmp_path.iterdir()}
