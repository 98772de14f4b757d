"""Commands of ``dipedl bench`` for runs on another machine: take data along, bring rows back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

__all__ = ["adopt", "pack", "unpack"]

SuiteName = Annotated[str, typer.Argument(help="Name of a suite, or the path of a TOML file.")]


def pack(
    suite: SuiteName,
    out: Annotated[Path, typer.Option(help="Folder of the bundles.")],
    profile: Annotated[str, typer.Option(help="Whose data; a profile of the suite.")] = "cpu",
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data sets; default: $DIPEDL_DATA, else downloaded."),
    ] = None,
    limit_mb: Annotated[float, typer.Option(help="Largest size of a bundle, in MiB.")] = 60.0,
) -> None:
    """Write the data of a profile as bundles of limited size, for a machine that has none."""
    try:
        from ..bench import bundles

        written = bundles.pack(
            _sets(suite, profile, data), out, data_dir=data, limit_mb=limit_mb, name=profile
        )
    except (ValueError, ImportError, OSError) as error:
        _fail(error)
    for path in written:
        typer.echo(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
    typer.echo(f"On the other machine: dipedl bench unpack {out} --data DATA")


def unpack(
    bundles: Annotated[list[Path], typer.Argument(help="Bundles, or folders of them.")],
    data: Annotated[Path, typer.Option(help="Folder of the data sets; made if need be.")],
) -> None:
    """Put the official files together that are in bundles; they may come one at a time."""
    try:
        from ..bench.bundles import unpack as unpacked

        made = unpacked(_files(bundles), data, typer.echo)
    except (ValueError, ImportError, OSError) as error:
        _fail(error)
    waiting = len(list((data / ".parts").glob("*")))
    more = f"; {waiting} pieces wait for the rest of their file" if waiting else ""
    typer.echo(f"{len(made)} files in {data}{more}")


def adopt(
    files: Annotated[list[Path], typer.Argument(help="rows.jsonl of runs elsewhere.")],
    out: Annotated[
        Path | None,
        typer.Option(help="Folder of all results; default: $DIPEDL_BENCH, else ./bench-results."),
    ] = None,
) -> None:
    """Take rows that another machine has made into the results of this one."""
    try:
        from ..bench.results.merge import adopt as adopted

        new, present = adopted(files, out)
    except (ValueError, ImportError, OSError) as error:
        _fail(error)
    typer.echo(f"{new} new rows, {present} were there before.")


def _sets(suite: str, profile: str, data: Path | None) -> list[str]:
    """Data set and OOD sets of a profile that come in files."""
    from ..bench.bundles import FILES_OF
    from ..bench.spec.stand_in import first_there
    from ..bench.spec.suite import chosen_ood, load_suite

    loaded = load_suite(suite)
    setting = loaded.profile(profile)
    if setting.dataset not in FILES_OF:
        raise ValueError(
            f"profile {profile!r} of {suite!r} needs no files: its images come with the package; "
            "name another with --profile"
        )
    folder = os.environ.get("DIPEDL_DATA") if data is None else data
    ood = chosen_ood(loaded, setting, lambda names: first_there(names, folder, _note))
    return [setting.dataset, *ood]


def _note(text: str) -> None:
    typer.echo(text, err=True)


def _files(given: list[Path]) -> list[Path]:
    found: list[Path] = []
    for path in given:
        inside = sorted(path.glob("*.tar")) if path.is_dir() else [path]
        if not inside:
            raise FileNotFoundError(f"no bundle (*.tar) in {str(path)!r}; make some with pack")
        found += inside
    return found


def _fail(error: Any) -> NoReturn:
    typer.echo(f"dipedl: {error}", err=True)
    raise typer.Exit(2)
