"""Known vulnerabilities of pinned packages, by pip-audit: fails only if there are any.

``python scripts/audit.py constraints.txt``; without a network or without pip-audit it says so.
"""

from __future__ import annotations

import json
import subprocess
import sys


def found(report: str) -> list[str]:
    """A line for each vulnerability in the JSON report of pip-audit."""
    return [
        f"{package['name']} {package['version']}: {fault['id']}, fixed in "
        f"{', '.join(fault['fix_versions']) or 'no version'}"
        for package in json.loads(report)["dependencies"]
        for fault in package.get("vulns", [])
    ]


def main(requirements: str) -> int:
    """1 if there are vulnerabilities, 0 if there are none or nobody can be asked."""
    audit = [sys.executable, "-m", "pip_audit", "--no-deps", "--disable-pip", "--format", "json"]
    done = subprocess.run(
        [*audit, "--progress-spinner", "off", "-r", requirements], capture_output=True, text=True
    )
    try:
        faults = found(done.stdout)
    except (ValueError, KeyError):
        why = done.stderr.strip().splitlines()[-1:] or ["pip-audit said nothing"]
        print(f"audit skipped, nobody could be asked: {why[0]}")
        return 0
    print("\n".join(faults) or f"no known vulnerability in {requirements}")
    return int(bool(faults))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
