"""``dipedl-bench``: run a suite; tables, sweeps, a page and a check of what a run left."""

from __future__ import annotations

import json
import os
import shlex
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from dipedl.writing import error_text, plain, write_file

from ..names import refuse_unknown
from ..results.rows import default_root, load_rows
from ..results.rows import merge as merge_rows
from ..results.store import Store
from ..spec.captions import captions_of
from ..spec.suite import load_suite, suite_names

bench = typer.Typer(
    help="Compare methods: trains what is missing, keeps every per-sample answer.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SuiteName = Annotated[str, typer.Argument(help="Name of a suite, or the path of a TOML file.")]
Methods = Annotated[str, typer.Option(help="all, or names: dip-edl,edl.")]
DataSets = Annotated[str, typer.Option(help="Of a crossed suite: all, or names: mnist,wine-1.")]
Classifiers = Annotated[str, typer.Option(help="Of a crossed suite: all, or names.")]
ProfileName = Annotated[
    str | None,
    typer.Option(
        help="Default: the only one that there are results of; of several the first of the suite's "
        "page of results."
    ),
]
Seeds = Annotated[
    str | None, typer.Option(help="Such as --seeds 10,20,30; default: all that there are.")
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

_ON_CALIBRATION = (
    "methods named -calibration, and your own, are fitted here on calibration rows, which the "
    "network has not seen; published rows are fitted on its training rows, and may be of another "
    "training"
)
_MORE = (
    "`dipedl-bench table` prints every metric and set of the rows in a folder --out, with "
    "--published beside those that are published"
)
#: So many rows that a budget left are named.
_NAMED = 12
_COMPARED = "A table for a paper, best and not significantly worse in bold, "
_OVER_SEEDS = "± is the population standard deviation over seeds; the paper ran once."
#: The sweeps, and how to read ± and the paper's numbers below each.
_SWEEPS = {
    "ablation": _OVER_SEEDS,
    "gamma": _OVER_SEEDS,
    "sigma": "± is the standard deviation over the draws of noise, as in the paper. * marks a mean "
    "more than two standard deviations, of ours and the paper's together, from the paper's.",
}


def main() -> None:
    """Run the command ``dipedl-bench``."""
    bench(prog_name="dipedl-bench")


@bench.command()
def run(
    suite: SuiteName,
    methods: Methods = "all",
    datasets: DataSets = "all",
    classifiers: Classifiers = "all",
    seeds: Seeds = None,
    profile: Annotated[
        str | None,
        typer.Option(help="How much of everything: smoke, cpu, paper, ...  [default: smoke]"),
    ] = None,
    budget: Annotated[
        float | None,
        typer.Option(help="Seconds; a training pauses in time, and the same command goes on."),
    ] = None,
    device: Annotated[
        str | None,
        typer.Option(
            help="auto, cpu, cuda: in place of the profile's, for networks that need none."
        ),
    ] = None,
    data: DataFolder = None,
    out: Out = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, only the result.")] = False,
) -> None:
    """Run methods of a suite; what is there already is not run again.

    May be killed at any time: the same command goes on.
    """
    _use_data(data)
    command, start = shlex.join(["dipedl-bench", *sys.argv[1:]]), time.monotonic()

    def progress(text: str) -> None:
        minutes, seconds = divmod(int(time.monotonic() - start), 60)
        typer.echo(f"[{minutes:3d}:{seconds:02d}] {text}", err=True)

    with _explain_errors():
        # names first: the runner takes seconds to import
        loaded = load_suite(suite)
        profile = profile or ("smoke" if "smoke" in loaded.profiles else None)
        if profile is None:
            known = ", ".join(loaded.profiles)
            raise ValueError(f"suite {suite!r} must be given a profile with --profile: {known}")
        loaded.choose_methods(profile, _names(methods))
        from ..running import runner

        try:
            result = runner.run(
                suite,
                profile=profile,
                datasets=_names(datasets),
                classifiers=_names(classifiers),
                methods=_names(methods),
                seeds=_seeds(seeds),
                out=out,
                budget=budget,
                device=device,
                progress=None if quiet else progress,
            )
        except KeyboardInterrupt:
            typer.echo(f"\nStopped. What is finished is kept; to go on: {command}", err=True)
            raise typer.Exit(130) from None
    typer.echo(f"{len(result.rows)} new rows, {result.present} were there before.")
    waiting: dict[tuple[int, str], list[str]] = {}
    for (method, seed), why in result.failed.items():
        waiting.setdefault((seed, why), []).append(method)
    for (seed, why), names in waiting.items():
        typer.echo(f"dipedl-bench: no row of {', '.join(names)}, seed {seed}: {why}", err=True)
    if result.left:
        names = [f"{method} ({seed})" for method, seed in result.left]
        more = [f"and {len(names) - _NAMED} more"] if len(names) > _NAMED else []
        left = ", ".join([*names[:_NAMED], *more])
        typer.echo(f"Rows that the budget left: {left}.\nTo go on: {command}")
    if result.failed:
        raise typer.Exit(1)


@bench.command()
def table(
    suite: SuiteName,
    profile: ProfileName = None,
    out: Out = None,
    as_json: Json = False,
    latex: Annotated[bool, typer.Option("--latex", help=_COMPARED + "for LaTeX.")] = False,
    as_markdown: Annotated[
        bool, typer.Option("--markdown", help=_COMPARED + "as Markdown.")
    ] = False,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="The same, a line for each method and metric.")
    ] = False,
    published: Annotated[
        Path | None,
        typer.Option(
            help="Root of published results, such as research/results/bench, whose rows of the "
            "suite and profile stand beside, or alone if there are no others."
        ),
    ] = None,
    methods: Annotated[str, typer.Option(help="Of a table for a paper: all, or names.")] = "all",
    metrics: Annotated[
        str | None, typer.Option(help="Of a table for a paper, such as accuracy,auroc/kmnist.")
    ] = None,
    trivial: Annotated[
        bool,
        typer.Option(
            help="Also detectors that need no model; looks once at the images (downloads them)."
        ),
    ] = True,
) -> None:
    """Print methods by metrics, ours beside the paper's, and what each method cost, as Markdown.

    With --latex, --markdown or --csv one table for a paper: the best of each column in bold, and
    what is not significantly worse, by the test that the caption names.
    """
    with _explain_errors():
        from ..studies.comparison import (
            compare_methods,
            complete_rows,
            write_csv,
            write_latex,
            write_markdown,
        )
        from ..tables.blocks import markdown
        from ..tables.pairs import summary
        from ..tables.provenance import describe_older
        from ..tables.table import bench_table
        from ..tables.trivial import add_trivial

        wanted = {write_latex: latex, write_markdown: as_markdown, write_csv: as_csv}
        writers = [write for write, is_wanted in wanted.items() if is_wanted]
        if len(writers) + as_json > 1:
            raise ValueError("choose one of --json, --latex, --markdown and --csv")
        if not writers and (methods != "all" or metrics):
            raise ValueError("--methods and --metrics are of --latex, --markdown or --csv")
        own, missing = load_suite(suite) if suite.endswith(".toml") else None, ""
        name = own.name if own else suite
        # without rows of one's own the published ones stand alone
        is_alone = published is not None and out is None
        is_alone &= not any(default_root().glob(f"{name}/{profile or '*'}/rows.jsonl"))
        store = _store(suite, profile, published if is_alone else out)
        stores = [store]
        if published is not None and not is_alone:
            load_rows(store.suite, store.profile, published)  # names the folder if there are none
            stores = [Store(published, store.suite, store.profile), store]
        rows = [row for of in stores for row in complete_rows(of, of.rows())]
        made = bench_table(rows, own)
        if writers:
            columns = None if metrics is None else _names(metrics)
            compared = compare_methods(made, *stores, methods=_names(methods), metrics=columns)
            typer.echo(writers[0](compared), nl=False)
            return
        if trivial and not made.crossed:
            made, missing = add_trivial(made, store)
        if as_json:
            values = made.as_json()
            values |= {"summary": plain(summary(made).to_dict("records"))} if made.crossed else {}
            text = json.dumps(values, indent=1, allow_nan=False) + "\n"
        else:
            older = "" if made.crossed else describe_older(made, rows)
            text = markdown(made) + (older and f"\n{older}\n")
    if missing:
        typer.echo(f"dipedl-bench: no trivial detectors: {missing}", err=True)
    typer.echo(text, nl=False)


@bench.command()
def sweep(
    suite: SuiteName,
    what: Annotated[str, typer.Argument(help="ablation, gamma or sigma.")],
    method: Annotated[str, typer.Option(help="A method with classifier and density.")] = "dip-edl",
    profile: ProfileName = None,
    out: Out = None,
) -> None:
    """Print the component ablation, or the sweep over gamma or sigma; trains nothing."""
    with _explain_errors():
        from ..studies import sweeps
        from ..tables.table import paper_suite

        refuse_unknown("sweep", [what], _SWEEPS)
        store = _store(suite, profile, out)
        rows = store.rows()
        if any("dataset" in row for row in rows):
            raise ValueError(
                f"suite {store.suite!r} crosses data sets with classifiers; a sweep is of one of "
                "each, such as dipedl-bench sweep mnist gamma"
            )
        if store.suite in suite_names():
            known = {*load_suite(store.suite).methods, *(row["method"] for row in rows)}
            refuse_unknown("method", [method], sorted(known))
        of_seeds = sweeps.load_parts(store, method)
        parts = list(of_seeds.values())
        published = paper_suite(rows)
        lines = sweeps.sweep_lines(what, parts, published)
    from ..tables.blocks import markdown_blocks, sweep_blocks

    blocks = [f"{method}, seeds {', '.join(map(str, of_seeds))}"]
    blocks += markdown_blocks(sweep_blocks(what, lines), "##")
    if what == "ablation":
        blocks.append("The same ranked in float32: rounding noise where there should be ties")
        noise = sweeps.sweep_lines("float32", parts, published)
        blocks += markdown_blocks(sweep_blocks(what, noise), "##")
    typer.echo("\n\n".join([*blocks, _SWEEPS[what]]))


@bench.command()
def toys(
    out: Out = None,
    points: Annotated[
        int, typer.Option(help="Points of the first experiment; an even number.", min=2)
    ] = 100_000,
) -> None:
    """Run the two toy experiments, vacuity under interpolation and two moons, for their page."""
    with _explain_errors():
        if points % 2:
            raise ValueError(f"--points must be even, half for each class, got {points}")
        from ..studies.toy_vacuity import vacuity_frame
        from ..studies.toys import run_toys
        from ..tables.formatting import grid

        result = run_toys(
            out or default_root(), lambda text: typer.echo(text, err=True), n_points=points
        )
    typer.echo(grid(vacuity_frame(result.vacuity)))


@bench.command()
def page(
    out: Out = None,
    file: Annotated[Path, typer.Option(help="Where to write it.")] = Path("methods.html"),
) -> None:
    """Write one HTML page of all methods, metrics and suites, to sort and filter, with receipts.

    It holds every row below the folder of results, and loads nothing when it is opened.
    """
    with _explain_errors():
        if not (folder := file.absolute().parent).is_dir():
            raise FileNotFoundError(f"--file: the folder {folder} does not exist; create it")
        from ..report.methods_page import render_methods

        write_file(file, render_methods(out or default_root()))
    typer.echo(f"Page: {file}")


@bench.command()
def merge(
    files: Annotated[list[Path], typer.Argument(help="rows.jsonl files of other machines.")],
    out: Out = None,
) -> None:
    """Merge rows of another machine into the results of this one."""
    with _explain_errors():
        new, present = merge_rows(files, out)
    typer.echo(f"{new} new rows, {present} were there before.")


Published = Annotated[
    Path | None,
    typer.Option(help="Root of published results; default: research/results/bench of the clone."),
]


@bench.command("score")
def score_methods(
    suites: Annotated[
        list[str],
        typer.Argument(
            help="Suites with published predictions, TOML files of your own whose predictions were "
            "exported, or a .npz file."
        ),
    ],
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="my.module:Class, or the name of a method; may be given again. Default, and "
            "beside classes of your own: of a suite all that need the outputs of the network "
            "alone, of a file the row of its outputs."
        ),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(help="Of the table of a .npz file, as `import` has it; default: mine."),
    ] = None,
    seeds: Seeds = None,
    profile: ProfileName = None,
    published: Published = None,
    out: Annotated[Path | None, typer.Option(help="Also add the rows to these results.")] = None,
) -> None:
    """Score methods from published predictions, beside the published rows; trains nothing.

    A method is fitted on the calibration rows, which the network has not seen.
    """
    with _explain_errors():
        from ..running import scoring
        from ..tables.blocks import ranking
        from ..tables.table import bench_table

        own = bool(method) and all(":" in name for name in method or ())
        options: dict[str, Any] = {
            "profile": profile,
            "seeds": _seeds(seeds),
            "published": published,
        }
        for suite in suites:  # before the first is scored, in minutes
            scoring.check_arguments(suite, name=name, **options)
            if scoring.is_suite(suite):
                scoring.find_predictions(suite, **options)
        for suite in suites:
            rows = []
            # beside methods of one's own, those of the suite on the same network and rows
            for methods in [method, None] if own else [method or None]:
                rows += scoring.score(suite, methods=methods, name=name, out=out, **options)
            mine = [of["method"] for of in rows if not own or ":" in of["config"]["estimator"]]
            # one seed more or less moves a mean by more than methods differ
            scored = {of["seed"] for of in rows}
            published_rows = _published_rows(rows, suite, published)
            beside = [of for of in published_rows if of["seed"] in scored]
            typer.echo(ranking(bench_table([*beside, *rows]), mine if method else ()))
            for line in _elsewhere([*beside, *rows], published):
                typer.echo(f"dipedl-bench: {line}", err=True)
        typer.echo(f"dipedl-bench: {_ON_CALIBRATION}; {_MORE}", err=True)


@bench.command("import")
def import_arrays(
    arrays: Annotated[Path, typer.Argument(help="A .npz file; its keys: docs/join.md.")],
    name: Annotated[str, typer.Option(help="Of the row.")] = "mine",
    title: Annotated[str | None, typer.Option(help="Of the row; default: its name.")] = None,
    suite: Annotated[
        str | None, typer.Option(help="Whose table the row joins; default: one of its own.")
    ] = None,
    profile: ProfileName = None,
    published: Published = None,
    out: Out = None,
) -> None:
    """Make a row of arrays of your own, beside the published rows of a suite; trains nothing."""
    with _explain_errors():
        from ..running import scoring
        from ..tables.blocks import ranking
        from ..tables.table import bench_table

        rows = scoring.score(
            arrays,
            name=name,
            title=title,
            suite=suite,
            profile=profile,
            published=published,
            out=out or default_root(),
        )
        table = bench_table([*_published_rows(rows, "", published), *rows])
        typer.echo(ranking(table, [name]), nl=False)
    typer.echo(f"dipedl-bench: {_MORE}", err=True)


@bench.command()
def export_predictions(
    suite: SuiteName,
    profile: ProfileName = None,
    out: Out = None,
) -> None:
    """Write what `score` needs of the first network of a suite, one file for each seed."""
    with _explain_errors():
        from ..running import scoring

        root = out or default_root()
        profile = profile or scoring.default_profile(load_suite(suite), root)
        for file in scoring.export(suite, profile, root):
            typer.echo(f"{file} ({file.stat().st_size / 1e6:.1f} MB)")


def _published_rows(
    rows: list[dict[str, Any]], source: str, published: Path | None
) -> list[dict[str, Any]]:
    """Published rows of the suite and profile of other rows; none of arrays that join no suite."""
    from ..running.scoring import published_root
    from ..studies.comparison import complete_rows

    suite, profile = rows[0]["suite"], rows[0]["profile"]
    if suite not in suite_names() and not source.endswith(".toml"):
        return []
    store = Store(published or published_root(suite), suite, profile)
    return complete_rows(store, store.rows())


def _elsewhere(rows: list[dict[str, Any]], published: Path | None) -> Iterator[str]:
    """Say which methods have published rows in other profiles of the suite of `rows` alone."""
    from ..running.scoring import published_root

    suite, here = rows[0]["suite"], {of["method"] for of in rows}
    root = published or published_root(suite)
    for profile in load_suite(suite).profiles if suite in suite_names() else ():
        others = Store(root, suite, profile).rows() if profile != rows[0]["profile"] else []
        if titles := {of["method"]: of["title"] for of in others if of["method"] not in here}:
            yield (
                f"published in profile {profile} alone: {', '.join(titles.values())}; "
                f"dipedl-bench table {suite} --profile {profile} --out {root}"
            )


@bench.command()
def verify(
    suite: SuiteName,
    methods: Methods = "all",
    seed: Annotated[int | None, typer.Option(help="Default: the smallest that has rows.")] = None,
    profile: ProfileName = None,
    datasets: DataSets = "all",
    classifiers: Classifiers = "all",
    data: DataFolder = None,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Train rows again, in a folder that is thrown away, and say which metrics agree.

    Exit code 1 if one does not. Tolerances are those of docs/protocol.md.
    """
    _use_data(data)
    with _explain_errors():
        from ..running import verify as module

        rows = module.verify(
            suite,
            profile=_store(suite, profile, out).profile,
            methods=_names(methods),
            datasets=_names(datasets),
            classifiers=_names(classifiers),
            seed=seed,
            out=out,
            progress=lambda text: typer.echo(text, err=True),
        )
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
    else:
        typer.echo("\n".join(line for row in rows for line in _verified_lines(row)))
    if not all(row["agrees"] for row in rows):
        raise typer.Exit(1)


def _verified_lines(row: dict[str, Any]) -> Iterator[str]:
    place = f"{row['data']}/{row['classifier']}: " if row["data"] else ""
    name = f"{place}{row['method']}, seed {row['seed']}"
    if row["why"]:
        yield f"{name}: not compared: {row['why']}"
        return
    how = "the same machine, versions and threads: equal bits are expected"
    if not row["same"]:
        how = f"then on {row['then']}; now on {row['now']}"
    agree = sum(of["agrees"] for of in row["metrics"].values())
    yield f"{name}: {agree} of {len(row['metrics'])} metrics agree ({how})"
    for metric, of in row["metrics"].items():
        if not of["agrees"]:
            again = "gone" if of["again"] is None else f"{of['again']:.4f}"
            within = f"tolerance {of['tolerance']:g}"
            yield f"  {metric}: {of['published']:.4f} published, {again} now, {within}"


# ---------------------------------------------------------------------------- what is typed


def _seeds(typed: str | None) -> list[int] | None:
    words = [] if typed is None else typed.split(",")
    for word in words:
        if not word.strip().isdecimal():
            raise ValueError(f"--seeds must be integers >= 0 between commas, got {word!r}")
    return [int(word) for word in words] or None


def _names(typed: str) -> list[str] | None:
    """Names between commas; None for "all"."""
    return None if typed == "all" else [name.strip() for name in typed.split(",") if name.strip()]


def _use_data(folder: Path | None) -> None:
    """Read the data sets from a folder, as if the environment had named it."""
    if folder is not None and not folder.is_dir():
        _fail(
            "--data must be the folder that holds mnist/, kmnist/, cifar10/ and so on, "
            f"but {str(folder)!r} is no folder"
        )
    os.environ |= {} if folder is None else {"DIPEDL_DATA": str(folder)}


def _store(suite: str, profile: str | None, out: Path | None) -> Store:
    """Return the results of a suite; of several profiles those of the first of the suite's page."""
    root, is_file = out or default_root(), suite.endswith(".toml")
    if not is_file:
        there = (file.parent.parent.name for file in root.glob("*/*/rows.jsonl"))
        refuse_unknown("suite", [suite], sorted({*suite_names(), *there}))
    if is_file or suite in suite_names():
        loaded = load_suite(suite)
        suite = loaded.name
        if profile is not None:
            loaded.profile(profile)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a damaged line is named once, when the rows are used
        profiles = sorted({row["profile"] for row in load_rows(suite, profile, out)})
    if len(profiles) == 1:
        return Store(root, suite, profiles[0])
    page = captions_of(suite).page
    first = next((name for name in page.profiles if name in profiles), None) if page else None
    if first is None:
        raise ValueError(f"there are results of the profiles {profiles}; choose one with --profile")
    others = ", ".join(name for name in profiles if name != first)
    typer.echo(f"dipedl-bench: this is profile {first}; with --profile also: {others}", err=True)
    return Store(root, suite, first)


def _fail(message: str) -> NoReturn:
    """Print an error in one line, and exit with code 2."""
    typer.echo(f"dipedl-bench: {message}", err=True)
    raise typer.Exit(2)


@contextmanager
def _explain_errors() -> Iterator[None]:
    """Turn what users can mend into one line and exit code 2."""
    try:
        with warnings.catch_warnings(record=True) as seen:
            yield
    except ImportError as error:
        _fail(f"{error}: pip install -e research, in the top folder, brings what is needed")
    except (ValueError, LookupError, OSError) as error:
        _fail(error_text(error))
    for text in dict.fromkeys(str(warning.message) for warning in seen):
        typer.echo(f"dipedl-bench: {text}", err=True)
