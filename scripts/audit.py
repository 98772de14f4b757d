"""Known vulnerabilities of pinned packages, by pip-audit: fails only if there are any.

``python scripts/audit.py constraints.txt``. Without a network, without pip-audit or with an index
that knows of no vulnerability at all (some mirrors) it says so and passes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

#: A version with vulnerabilities that were published in 2024: an index that knows none is no help.
PROBE = "jinja2==3.1.2"


class NobodyToAskError(Exception):
    """There is no answer about vulnerabilities."""


def vulnerabilities(requirements: Path) -> list[str]:
    """A line for each known vulnerability of the requirements."""
    audit = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
    done = subprocess.run(
        [*audit, "--progress-spinner", "off", "-r", requirements], capture_output=True, text=True
    )
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        said = done.stderr.strip().splitlines() or ["pip-audit said nothing"]
        raise NobodyToAskError(said[-1][:200]) from None
    return [
        f"{package['name']} {package['version']}: {fault['id']}, fixed in "
        f"{', '.join(fault['fix_versions']) or 'no version'}"
        for package in packages
        for fault in package.get("vulns", [])
    ]


def main(requirements: str) -> int:
    """1 if there are vulnerabilities, 0 if there are none or nobody can be asked."""
    with tempfile.TemporaryDirectory() as folder:
        probe = Path(folder, "probe.txt")
        probe.write_text(PROBE + "\n", "utf-8")
        try:
            if not vulnerabilities(probe):
                raise NobodyToAskError(f"the index knows of none, not even of {PROBE}")
            faults = vulnerabilities(Path(requirements))
        except NobodyToAskError as error:
            print(f"audit skipped: {error}")
            return 0
    print("\n".join(faults) or f"no known vulnerability in {requirements}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
