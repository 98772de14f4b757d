"""``dipedl serve``."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from .terminal import echo, report_errors


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
    max_megabytes: Annotated[float, typer.Option(help="Largest body.", min=0.001)] = 8.0,
    max_rows: Annotated[int, typer.Option(help="Most rows of a request.", min=1)] = 10_000,
    seconds: Annotated[float, typer.Option(help="Longest time for a request.", min=0.01)] = 10.0,
    waiting: Annotated[int, typer.Option(help="Most requests at a time.", min=1)] = 128,
    log_inputs: Annotated[
        bool, typer.Option("--log-inputs", help="Log the rows too: they may be personal data.")
    ] = False,
) -> None:
    """Answer over HTTP: rows in, labels, probabilities, vacuity, p-values and flags out.

    Logs one line of JSON per request on stderr. SIGHUP reads the files again; SIGTERM ends the
    service once the requests that have begun are answered.
    """
    with report_errors(quiet=False), _hangups() as hangups:
        from ..serve import Models, Settings, create_app
        from ..serve.models import parse_paths
        from ..serve.process import bind, check_exposed, loopback_names, run, url_of
        from ..serve.settings import read_token
        from ..serve.telemetry import log_as_json
        from ..table.errors import UsageError

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
            () if token else loopback_names(host),
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
                found, pictures = demo_models()
                app = create_app(found, replace(settings, window=WINDOW), pictures)
            else:
                app = create_app(Models(paths), settings)
            log_as_json(sys.stderr)
            served = ", ".join(one.name for one in app.state.service.models)
            told = f"Answering by {served} at {url_of(address)}"
            # Clients that ask now wait until the loop runs.
            address.listen()
            echo(told)
            run(app, address, hangups)


@contextmanager
def _hangups() -> Iterator[list[int]]:
    """Yield a list of each SIGHUP during the start: the files are read again once all runs."""
    came: list[int] = []
    if not hasattr(signal, "SIGHUP"):
        yield came
        return
    before = signal.signal(signal.SIGHUP, lambda number, _: came.append(number))
    try:
        yield came
    finally:
        signal.signal(signal.SIGHUP, before)
