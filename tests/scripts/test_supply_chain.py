"""What is installed: pinned, hashed, audited."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
import audit  # noqa: E402


def pinned(*paths):
    """Lines of requirements by name, lower case."""
    lines = [line for path in paths for line in (ROOT / path).read_text("utf-8").splitlines()]
    found = [re.match(r"([\w.-]+)==(\S+)(.*)", line) for line in lines]
    return {m[1].lower().replace("_", "-"): (m[2], m[3]) for m in found if m}


def test_every_pinned_package_has_a_hash_of_the_same_version():
    versions = pinned("constraints.txt")
    hashed = pinned(*(f".ci/hashes/{name}.txt" for name in ("demo", "dev", "docs")))
    assert all(re.fullmatch(r" --hash=sha256:[0-9a-f]{64}", rest) for _, rest in hashed.values())
    assert {name for name in versions if name not in hashed} == {"torch"}
    assert all(hashed[n][0] == version for n, (version, _) in versions.items() if n != "torch")


def test_each_extra_is_asked_for_by_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    source = "".join(p.read_text("utf-8") for p in (ROOT / "src").rglob("*.py"))
    modules = {"pillow": "PIL", "prometheus-client": "prometheus_client"}
    for extra, packages in project["optional-dependencies"].items():
        names = [re.match(r"[\w-]+", p)[0] for p in packages if not p.startswith("dipedl[")]
        for name in names:
            assert re.search(rf"\b{modules.get(name, name)}\b", source), (extra, name)


def reported(*packages):
    """What pip-audit prints of packages with the numbers of their vulnerabilities."""
    vulns = [[{"id": f"PYSEC-{i}", "fix_versions": ["2"]} for i in range(n)] for _, n in packages]
    found = [
        {"name": p[0], "version": "1", "vulns": v} for p, v in zip(packages, vulns, strict=True)
    ]
    return json.dumps({"dependencies": found})


@pytest.mark.parametrize(
    ("answers", "code", "said"),
    [
        ([reported(("jinja2", 1)), reported(("a", 0), ("b", 1))], 1, "b 1: PYSEC-0, fixed in 2"),
        ([reported(("jinja2", 1)), reported(("a", 0))], 0, "no known vulnerability"),
        ([reported(("jinja2", 0))], 0, "audit skipped: the index knows of none, not even of jinja"),
        ([""], 0, "audit skipped: no route to host"),
        ([reported(("jinja2", 1)), "{}"], 0, "audit skipped: no route to host"),
    ],
)
def test_the_audit_fails_for_vulnerabilities_alone(capsys, monkeypatch, answers, code, said):
    left = list(answers)

    def run(*args, **options):
        return subprocess.CompletedProcess([], 1, left.pop(0), "Traceback\nno route to host")

    monkeypatch.setattr(subprocess, "run", run)
    assert audit.main("constraints.txt") == code and not left
    assert said in capsys.readouterr().out
