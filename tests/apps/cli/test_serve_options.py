"""Options of ``dipedl serve``."""

import inspect
import subprocess
import sys

from dipedl.apps.cli.serve import serve
from dipedl.apps.serve import Settings


def test_the_defaults_are_those_of_the_settings():
    options = inspect.signature(serve).parameters
    settings = Settings()
    for option, name in (("max_rows", "rows"), ("seconds", "seconds"), ("waiting", "waiting")):
        assert options[option].default == getattr(settings, name)
    assert options["max_megabytes"].default * (1 << 20) == settings.body_bytes


def test_the_command_line_loads_no_server():
    code = "import sys, dipedl.apps.cli.app; print('fastapi' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
