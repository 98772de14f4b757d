"""What is installed: pinned, hashed, audited."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

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
    hashed = pinned(".ci/hashes/demo.txt", ".ci/hashes/dev.txt")
    assert all(re.fullmatch(r" --hash=sha256:[0-9a-f]{64}", rest) for _, rest in hashed.values())
    assert {name for name in versions if name not in hashed} == {"torch"}
    assert all(hashed[n][0] == version for n, (version, _) in versions.items() if n != "torch")


def test_each_extra_is_asked_for_by_the_package():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    source = "".join(p.read_text("utf-8") for p in (ROOT / "src").rglob("*.py"))
    modules = {"pillow": "PIL", "faiss-cpu": "faiss"}
    for extra, packages in project["optional-dependencies"].items():
        names = [re.match(r"[\w-]+", p)[0] for p in packages if not p.startswith("dipedl[")]
        for name in names:
            assert re.search(rf"\b{modules.get(name, name)}\b", source), (extra, name)


def test_vulnerabilities_are_told_and_an_unreachable_index_passes(capsys, monkeypatch):
    fault = {"id": "PYSEC-1", "fix_versions": ["2"]}
    report = {"dependencies": [{"name": "a", "version": "1", "vulns": [fault]}, {"name": "b"}]}
    for stdout, code, said in (
        (json.dumps(report), 1, "a 1: PYSEC-1, fixed in 2"),
        ('{"dependencies": [{"name": "b", "version": "1", "vulns": []}]}', 0, "no known"),
        ("", 0, "audit skipped, nobody could be asked: no route to host"),
    ):
        done = subprocess.CompletedProcess([], 1, stdout, "Traceback\nno route to host")
        monkeypatch.setattr(subprocess, "run", lambda *a, done=done, **k: done)
        assert audit.main("constraints.txt") == code
        assert said in capsys.readouterr().out
