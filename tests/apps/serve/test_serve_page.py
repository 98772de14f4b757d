"""What the page says for shells, containers and systemd is what the command understands."""

import json
import re
from pathlib import Path

from typer.testing import CliRunner

from dipedl.apps.cli.app import app

PAGE = (Path(__file__).parents[3] / "docs/how-to/serve.md").read_text("utf-8")


def blocks(kind):
    return re.findall(rf"^```{kind}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)


def test_every_option_of_the_page_is_one_of_the_command():
    help_ = CliRunner(env={"COLUMNS": "200"}).invoke(app, ["serve", "--help"]).output
    lines = [line for line in PAGE.splitlines() if "dipedl serve" in line]
    (limits,) = re.findall(r"^## Limits\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL)
    said = set(re.findall(r"(?<!-)--[a-z][a-z-]+", " ".join([*lines, limits])))
    assert len(said) >= 6 and {option for option in said if option not in help_} == set()
    for name, default in re.findall(r"^\| `(--[a-z-]+)` \| ([\d,]+)", limits, re.MULTILINE):
        shown = re.search(rf"{name} .*?\[default: ([\d.]+)", help_.replace("\n", " "))
        assert float(shown[1]) == float(default.replace(",", ""))


def test_the_container_starts_the_command_and_asks_a_route_of_it():
    (text,) = blocks("dockerfile")
    steps = dict(re.findall(r"^(ENTRYPOINT|CMD|HEALTHCHECK|USER|EXPOSE) (.*)$", text, re.MULTILINE))
    entry, last = json.loads(steps["ENTRYPOINT"]), json.loads(steps["CMD"])
    # Reachable by others, and without a token in this process: the command says no, and why.
    done = CliRunner().invoke(app, [*entry[1:], *last])
    assert entry[0] == "dipedl" and done.exit_code == 2 and "has no token" in done.output
    assert f"COPY passengers.dipedl {last[0]}" in text and steps["EXPOSE"] == "8000"
    asked = json.loads(steps["HEALTHCHECK"].removeprefix("CMD "))
    compile(asked[2], "health", "exec")
    assert "127.0.0.1:8000/health/ready" in asked[2]


def test_the_request_of_the_page_is_answered(client):
    (body,) = re.findall(r"curl .* -d '(.*)'", PAGE)
    asked = json.loads(body)
    rows = [{**row, "port": "S"} for row in asked["rows"]]
    found = client.post("/v1/predict", json={**asked, "model": "people", "rows": rows}).json()
    assert [one["flagged"] for one in found["answers"]] == [False, True]
