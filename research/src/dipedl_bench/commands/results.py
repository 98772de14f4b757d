"""Commands of ``dipedl-bench`` on what a run has left: tables, sweeps, the report, a check."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from ..writing import error_text, plain, write_file

if TYPE_CHECKING:
    from ..results.parts import Parts
    from ..results.store import Store
    from ..running.verify import Verified
    from ..tables.table import BenchTable, Line

SuiteName = Annotated[str, typer.Argument(help="Name of a suite, or the path of a TOML file.")]
ProfileName = Annotated[
    str | None,
    typer.Option(
        help="Default: the only one that there are results of; of several the first of the suite's "
        "page of results."
    ),
]
Out = Annotated[
    Path | None,
    typer.Option(help="Folder of all results; default: $DIPEDL_BENCH, else ./bench-results."),
]
Json = Annotated[bool, typer.Option("--json", help="Every cell, for machines.")]

DataFolder = Annotated[
    Path | None,
    typer.Option(help="Folder of the data sets; default: $DIPEDL_DATA, else downloaded."),
]

Axis = Annotated[str, typer.Option(help="Of a crossed suite: all, or names.")]

_OVER_SEEDS = "± is the population standard deviation over seeds; the paper ran once."
#: The sweeps, and what is said of ± and of the paper's numbers below each.
_READ = {
    "ablation": _OVER_SEEDS,
    "gamma": _OVER_SEEDS,
    "sigma": "± is the standard deviation over the draws of noise, as in the paper. * marks a mean "
    "more than two standard deviations, of ours and the paper's together, from the paper's.",
}


def table(
    suite: SuiteName,
    profile: ProfileName = None,
    out: Out = None,
    as_json: Json = False,
    trivial: Annotated[
        bool,
        typer.Option(
            help="Also detectors that need no model; looks once at the images (downloads them)."
        ),
    ] = True,
) -> None:
    """Print methods by metrics, ours beside the paper's, and what each method cost, as Markdown."""
    with explained():
        made = _table(_store(suite, profile, out), trivial)
    if as_json:
        typer.echo(json.dumps(_as_json(made), indent=1, allow_nan=False))
    else:
        from ..tables.markdown import markdown

        typer.echo(markdown(made), nl=False)


def _as_json(made: BenchTable) -> dict[str, Any]:
    from ..tables.pairs import summary

    if not made.crossed:
        return made.as_json()
    return made.as_json() | {"summary": plain(summary(made).to_dict("records"))}


def sweep(
    suite: SuiteName,
    what: Annotated[str, typer.Argument(help="ablation, gamma or sigma.")],
    method: Annotated[str, typer.Option(help="A method with classifier and density.")] = "dip-edl",
    profile: ProfileName = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Print the component ablation, or the sweep over gamma or sigma; trains nothing."""
    with explained():
        from ..names import refuse_unknown
        from ..spec.suite import load_suite, suite_names
        from ..studies import sweeps
        from ..tables.table import paper_suite

        refuse_unknown("sweep", [what], _READ)
        store = _store(suite, profile, out)
        if any("dataset" in row for row in store.rows()):
            raise ValueError(
                f"suite {store.suite!r} crosses data sets with classifiers; a sweep is of one of "
                "each, such as dipedl-bench sweep mnist gamma"
            )
        if store.suite in suite_names():
            run_before = (row["method"] for row in store.rows())
            known = {*load_suite(store.suite).methods, *run_before}
            refuse_unknown("method", [method], sorted(known))
        of_seeds = sweeps.stored_parts(store, method)
        parts = list(of_seeds.values())
        published = paper_suite(store.rows())
        lines = getattr(sweeps, f"{what}_lines")(parts, published)
    if as_json:
        cells = {ln.name: {k: c.as_json() for k, c in ln.cells.items()} for ln in lines}
        typer.echo(json.dumps(cells, indent=1, allow_nan=False))
        return
    typer.echo(f"{method}, seeds {', '.join(str(seed) for seed in of_seeds)}\n")
    _print_sweep(what, lines, parts, published)


def report(
    suite: SuiteName,
    profile: ProfileName = None,
    out: Out = None,
    file: Annotated[Path, typer.Option(help="Where to write it.")] = Path("bench.html"),
) -> None:
    """Write one HTML page with all tables and figures; it loads nothing when it is opened.

    Detectors that need no model look at the images once; those are downloaded if DIPEDL_DATA is
    not set.
    """
    with explained():
        if not (folder := file.absolute().parent).is_dir():
            raise FileNotFoundError(f"--file: the folder {folder} does not exist; create it")
        from ..report.page import render

        write_file(file, render(_store(suite, profile, out)))
    typer.echo(f"Report: {file}")


def merge(
    files: Annotated[list[Path], typer.Argument(help="rows.jsonl files of other machines.")],
    out: Out = None,
) -> None:
    """Merge rows of another machine into the results of this one."""
    with explained():
        from ..results.merge import merge as merged

        new, present = merged(files, out)
    typer.echo(f"{new} new rows, {present} were there before.")


def verify(
    suite: SuiteName,
    methods: Annotated[str, typer.Option(help="all, or names: dip-edl,edl.")] = "all",
    seed: Annotated[int | None, typer.Option(help="Default: the smallest that has rows.")] = None,
    profile: ProfileName = None,
    datasets: Axis = "all",
    classifiers: Axis = "all",
    data: DataFolder = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Train rows again, in a folder that is thrown away, and say which metrics agree.

    Exit code 1 if one does not. Tolerances are those of docs/protocol.md.
    """
    check_data(data)
    with explained():
        from ..running.runner import StoppedError
        from ..running.verify import verify as verified

        try:
            found = verified(
                suite,
                profile=_store(suite, profile, out).profile,
                methods=chosen(methods),
                datasets=chosen(datasets),
                classifiers=chosen(classifiers),
                seed=seed,
                out=out,
                data_dir=data,
                progress=lambda text: typer.echo(text, err=True),
            )
        except StoppedError as error:
            fail(str(error))
    if as_json:
        typer.echo(json.dumps([one.as_json() for one in found], indent=1))
    else:
        typer.echo("\n".join(line for one in found for line in _verified_lines(one)))
    if not all(one.agrees for one in found):
        raise typer.Exit(1)


def _verified_lines(one: Verified) -> Iterator[str]:
    place = f"{one.data}, {one.classifier}: " if one.data else ""
    name = f"{place}{one.method}, seed {one.seed}"
    if one.why:
        yield f"{name}: not compared: {one.why}"
        return
    agree = sum(metric.agrees for metric in one.metrics.values())
    how = (
        "the same machine, versions and threads: equal bits are expected"
        if one.same
        else f"then on {one.then}; now on {one.now}"
    )
    yield f"{name}: {agree} of {len(one.metrics)} metrics agree ({how})"
    for metric, both in one.metrics.items():
        if not both.agrees:
            again = "gone" if both.again is None else f"{both.again:.4f}"
            within = f"tolerance {both.tolerance:g}"
            yield f"  {metric}: {both.published:.4f} published, {again} now, {within}"


def toys(
    out: Out = None,
    points: Annotated[
        int, typer.Option(help="Points of the first experiment; an even number.", min=2)
    ] = 100_000,
) -> None:
    """Run the two toy experiments, vacuity under interpolation and two moons, for the report."""
    with explained():
        from ..results.store import default_root
        from ..studies.toy_vacuity import table as as_text
        from ..studies.toys import run_toys

        told = partial(typer.echo, err=True)
        found = run_toys(out or default_root(), told, n_points=points)
    typer.echo(as_text(found.vacuity))


def _store(suite: str, profile: str | None, out: Path | None) -> Store:
    from ..names import refuse_unknown
    from ..results.store import Store, default_root, load_rows
    from ..spec.suite import load_suite, suite_names

    file = suite if suite.endswith(".toml") else None
    if not file:
        there = (file.parent.parent.name for file in (out or default_root()).glob("*/*/rows.jsonl"))
        refuse_unknown("suite", [suite], sorted({*suite_names(), *there}))
    if file or suite in suite_names():
        loaded = load_suite(suite)
        suite = loaded.name
        if profile is not None:
            loaded.profile(profile)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a torn line is told once, when the rows are used
        found = sorted({row["profile"] for row in load_rows(suite, profile, out, file=file)})
    return Store(out or default_root(), suite, found[0] if len(found) == 1 else _main(suite, found))


def _main(suite: str, found: Sequence[str]) -> str:
    """Of several profiles with results the first of the suite's page; says so, and which others."""
    from ..spec.captions import captions_of

    page = captions_of(suite).page
    main = next((name for name in page.profiles if name in found), None) if page else None
    if main is None:
        raise ValueError(f"there are results of the profiles {found}; choose one with --profile")
    others = ", ".join(name for name in found if name != main)
    typer.echo(f"dipedl-bench: this is profile {main}; with --profile also: {others}", err=True)
    return main


def _table(store: Store, trivial: bool) -> BenchTable:
    from ..tables.table import bench_table

    made = bench_table(store.rows())
    if made.crossed or not trivial:
        return made
    from ..tables.trivial import with_trivial

    made, missing = with_trivial(made, store)
    if missing:
        typer.echo(f"dipedl-bench: no trivial detectors: {missing}", err=True)
    return made


def _print_sweep(what: str, lines: Sequence[Line], parts: Sequence[Parts], suite: str) -> None:
    from ..studies.sweeps import float32_lines

    blocks = list(_by_set(what, lines))
    if what == "ablation":
        blocks.append("The same ranked in float32: rounding noise where there should be ties")
        blocks += _by_set(what, float32_lines(parts, suite))
    typer.echo("\n\n".join([*blocks, _READ[what]]))


def _by_set(what: str, lines: Sequence[Line]) -> Iterator[str]:
    """Heading and table of each set on which a sweep was scored."""
    from ..tables.formatting import difference, grid, measured, metric_title, printed, set_title

    names: dict[str, list[str]] = {}
    for name in dict.fromkeys(name for line in lines for name in line.cells):
        names.setdefault(name.partition("/")[2], []).append(name)
    for split, of_set in names.items():
        heads = [what]
        rows = [[line.title] for line in lines]
        for name in of_set:
            cells = [line.cells.get(name) for line in lines]
            beside = any(cell and cell.paper for cell in cells)
            heads += [metric_title(name), *(["paper", "difference"] if beside else [])]
            for row, cell in zip(rows, cells, strict=True):
                row += [measured(cell), *([printed(cell), difference(cell)] if beside else [])]
        yield f"## {set_title(split)}\n\n{grid(heads, rows)}"


def fail(message: str) -> NoReturn:
    """Print an error in one line, and exit with code 2."""
    typer.echo(f"dipedl-bench: {message}", err=True)
    raise typer.Exit(2)


def check_data(folder: Path | None) -> None:
    """Refuse --data that is no folder."""
    if folder is not None and not folder.is_dir():
        fail(
            "--data must be the folder that holds mnist/, kmnist/, cifar10/ and so on, "
            f"but {str(folder)!r} is no folder"
        )


def chosen(typed: str) -> list[str] | None:
    """Names between commas; None for "all"."""
    return None if typed == "all" else [name.strip() for name in typed.split(",") if name.strip()]


@contextmanager
def explained() -> Iterator[None]:
    """Turn what users can mend into one line and exit code 2."""
    try:
        with warnings.catch_warnings(record=True) as seen:
            yield
    except ImportError as error:
        fail(f"{error}: pip install -e research, in the top folder, brings what is needed")
    except (ValueError, LookupError, OSError) as error:
        fail(error_text(error))
    for text in dict.fromkeys(str(warning.message) for warning in seen):
        typer.echo(f"dipedl-bench: {text}", err=True)
