"""Options of ``dipedl serve``."""

import inspect

from dipedl.apps.cli.serve import serve
from dipedl.apps.serve import Settings


def test_the_defaults_are_those_of_the_settings():
    options = inspect.signature(serve).parameters
    settings = Settings()
    for option, name in (("max_rows", "rows"), ("seconds", "seconds"), ("waiting", "waiting")):
        assert options[option].default == getattr(settings, name)
    assert options["max_megabytes"].default * (1 << 20) == settings.body_bytes
