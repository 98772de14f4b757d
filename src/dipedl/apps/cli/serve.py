"""``dipedl serve``."""

from __future__ import annotations

import ipaddress
import math
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ..serve.settings import Settings
from ..table.errors import UsageError, UserError
from .terminal import echo, report_errors

TOKEN = "DIPEDL_TOKEN"
_SHORTEST = 16
_DEFAULTS = Settings()
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def serve(
    models: Annotated[
        list[str] | None,
        typer.Argument(help="Files of models: PATH, or NAME=PATH.", show_default=False),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Fit models of bundled data, to try the page with.")
    ] = False,
    host: Annotated[str, typer.Option(help="Address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0: any free one.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None, typer.Option(help="Holds the token; default: the variable DIPEDL_TOKEN.")
    ] = None,
    without_token: Annotated[
        bool, typer.Option("--without-token", help="Let other machines ask without a token.")
    ] = False,
    max_megabytes: Annotated[
        float, typer.Option(help="Largest body.", min=0.001)
    ] = _DEFAULTS.body_bytes / (1 << 20),
    max_rows: Annotated[int, typer.Option(help="Most rows of a request.", min=1)] = _DEFAULTS.rows,
    seconds: Annotated[
        float, typer.Option(help="Longest time for a request.", min=0.01)
    ] = _DEFAULTS.seconds,
    waiting: Annotated[
        int, typer.Option(help="Most requests at a time.", min=1)
    ] = _DEFAULTS.waiting,
    log_inputs: Annotated[
        bool, typer.Option("--log-inputs", help="Log the rows too: they may be personal data.")
    ] = False,
) -> None:
    """Answer over HTTP: rows in, labels, probabilities, vacuity, p-values and flags out.

    Logs one line of JSON per request on stderr. SIGHUP reads the files again; SIGTERM ends the
    service once the requests that have begun are answered.
    """
    with report_errors(quiet=False), _hangups() as hangups:
        from ..serve.app import create_app
        from ..serve.models import Models
        from ..serve.process import bind, run, url_of
        from ..serve.telemetry import log_as_json

        if demo == bool(models):
            raise UsageError("name the files of models, as in model.dipedl, or say --demo")
        body_bytes = max_megabytes * (1 << 20)
        for option, value in (("--max-megabytes", body_bytes), ("--seconds", seconds)):
            if not math.isfinite(value):
                raise UsageError(f"{option} must be a finite number; leave it out for the default")
        paths, token = parse_paths(models or []), read_token(token_file)
        check_exposed(host, token, without_token)
        settings = Settings(
            token,
            # A page of the web could reach a loopback address by a name of its own.
            ("localhost", "127.0.0.1", "::1", host.lower())
            if _is_loopback(host) and not token
            else (),
            int(body_bytes),
            max_rows,
            seconds=seconds,
            waiting=waiting,
            log_inputs=log_inputs,
        )
        with bind(host, port, seconds) as address:
            if demo:
                from ..serve.demo import WINDOW, demo_models

                echo("Fitting models of bundled digits and flowers ...")
                fitted, pictures = demo_models()
                app = create_app(fitted, replace(settings, window=WINDOW), pictures)
            else:
                app = create_app(Models(paths), settings)
            log_as_json(sys.stderr)
            names = ", ".join(served.name for served in app.state.service.models)
            # Clients that ask now wait until the loop runs.
            address.listen()
            echo(f"Answering by {names} at {url_of(address)}")
            run(app, address, hangups)


def parse_paths(arguments: Iterable[str]) -> dict[str, Path]:
    """Return files by name out of "NAME=path" or "path", of which the name is the stem."""
    paths: dict[str, Path] = {}
    for text in arguments:
        name, sign, path = text.partition("=")
        if not sign or not _NAME.fullmatch(name):
            name, path = Path(text).stem, text
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"{text!r}: {name!r} cannot be the name of a model: give one of letters, digits, "
                "dots, dashes and underscores, as in passengers=model.dipedl"
            )
        if name in paths:
            raise UsageError(
                f"two models are named {name!r}, {paths[name]} and {path}: give each a name of its "
                f"own, as in {name}2={path}"
            )
        paths[name] = Path(path)
    return paths


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


def _is_loopback(host: str) -> bool:
    """Return whether an address can be reached from this machine alone."""
    with suppress(ValueError):
        return ipaddress.ip_address(host).is_loopback
    return host == "localhost"


def check_exposed(host: str, token: str, allowed: bool) -> None:
    """UsageError for a service that others can reach without a token, or with one and without."""
    if token and allowed:
        raise UsageError(
            f"--without-token is given, and a token by {TOKEN} or --token-file: leave one out"
        )
    if not (_is_loopback(host) or token or allowed):
        raise UsageError(
            f"--host {host} lets other machines ask this service, and it has no token: anyone who "
            f"reaches it could use the models. Give a token in the variable {TOKEN} or by "
            "--token-file, or say --without-token if something before it keeps others out"
        )


@contextmanager
def _hangups() -> Iterator[list[int]]:
    """Yield a list of each SIGHUP during the start: the files are read again once all runs."""
    signals: list[int] = []
    if not hasattr(signal, "SIGHUP"):
        yield signals
        return
    before = signal.signal(signal.SIGHUP, lambda number, _: signals.append(number))
    try:
        yield signals
    finally:
        signal.signal(signal.SIGHUP, before)
