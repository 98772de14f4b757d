"""Asks a running service what its OpenAPI allows, by Schemathesis: nothing may fail with 5xx.

``pip install schemathesis`` into any environment, then
``python scripts/check_openapi.py path/to/schemathesis [its options]``.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_iris

import dipedl

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,missing_required_header,ignored_auth"
)


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "iris.dipedl"
        X, y = load_iris(return_X_y=True)
        dipedl.DIPClassifier(random_state=0).fit(X, y).save(path)
        command = [sys.executable, "-m", "dipedl", "serve", str(path), "--port", "0"]
        service = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        try:
            url = service.stdout.readline().split()[-1]
            tool, *options = sys.argv[1:] or ["schemathesis"]
            run = [tool, "run", f"{url}/openapi.json", "--checks", CHECKS, *options]
            return subprocess.run(run, cwd=folder).returncode
        finally:
            service.terminate()
            service.wait(30)


if __name__ == "__main__":
    sys.exit(main())
