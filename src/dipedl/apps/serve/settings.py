"""Settings of a service: limits, the token, what is logged."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..table.errors import UsageError, UserError

TOKEN = "DIPEDL_TOKEN"
_SHORTEST = 16


@dataclass(frozen=True)
class Settings:
    """Limits and secrets of a service.

    Parameters
    ----------
    token : str, default=""
        What each request must bring as ``Authorization: Bearer ...``; "" asks for none.
    hosts : tuple of str, default=()
        Names by which requests may address the service, without ports; () allows any.
    body_bytes, rows : int
        Largest body and most rows of one request.
    explained : int
        Most rows of one request for explanations.
    seconds : float
        The longest time for the body of a request, and then for its answer.
    waiting : int
        Most requests with rows at a time; more are sent away.
    window : int, default=1000
        Answered rows after which their drift is looked at anew.
    log_inputs : bool, default=False
        Whether the log holds the rows of the requests.
    """

    token: str = field(default="", repr=False)
    hosts: tuple[str, ...] = ()
    body_bytes: int = 8 << 20
    rows: int = 10_000
    explained: int = 100
    seconds: float = 10.0
    waiting: int = 128
    window: int = 1000
    log_inputs: bool = False


def read_token(file: Path | None, environment: Mapping[str, str] = os.environ) -> str:
    """Return the token of a file or of the environment, "" if there is neither."""
    token = environment.get(TOKEN)
    if file is not None and token is not None:
        raise UsageError(f"--token-file and {TOKEN} both give a token; leave one out")
    if file is not None:
        try:
            token = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"--token-file {file} cannot be read: {error}") from error
    if token is None:
        return ""
    token = token.strip()
    if len(token) < _SHORTEST or not token.isascii() or " " in token:
        raise UserError(
            f"{TOKEN if file is None else f'--token-file {file}'} must hold {_SHORTEST} or more "
            "ASCII characters without spaces; make one with: openssl rand -hex 32"
        )
    return token
