"""Texts, errors and exit codes of all commands."""

from __future__ import annotations

import csv
import io
import json
import re
import shlex
import time
import warnings
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from ...protocols import EXTRAS, explain_missing
from ...writing.progress import LiveLine
from ...writing.text import error_text, one_line

if TYPE_CHECKING:
    from ...explanation import Diagnosis, Finding
    from ..table.reading import RejectedRow

#: Exit codes: the data or files are to blame; the command line; done in part; an alarm; Ctrl-C.
WRONG_DATA, WRONG_COMMAND, PARTIAL, ALARM, STOPPED = 1, 2, 3, 4, 130


def names_in(typed: str) -> list[str]:
    """Return names between commas; one that holds a comma stands in double quotes."""
    try:
        (names,) = csv.reader([typed], skipinitialspace=True)
    except (csv.Error, ValueError):
        fail(f"names with line breaks must stand in double quotes, got {typed!r}")
    return [name.strip() for name in names if name.strip()]


def pairs_in(typed: str) -> dict[str, str]:
    """Return columns and their kinds out of "zip=category,day=date"."""
    pairs = [pair.rpartition("=") for pair in names_in(typed)]
    for name, _, kind in pairs:
        if not name or not kind:
            fail(f"--types must be written as column=kind,column=kind, got {typed!r}")
    return {name.strip(): kind.strip() for name, _, kind in pairs}


def check_share(value: float, option: str, usual: str, *, ends: bool = False) -> None:
    """Refuse a share that is not between 0 and 1; with `ends` it may be 0 or 1."""
    if not (0 < value < 1 or (ends and value in (0, 1))):
        where = "be 0 to 1" if ends else "lie between 0 and 1"
        fail(f"{option} must {where}, got {value:g}; {usual} is usual")


def refuse_options(context: typer.Context, reasons: Mapping[str, str]) -> None:
    """Refuse options that were typed, by name, with the reason for each."""
    for name, reason in reasons.items():
        source = context.get_parameter_source(name)
        if source is not None and source.name != "DEFAULT":
            fail(f"--{name.replace('_', '-')} {reason}")


@contextmanager
def report_errors(quiet: bool, learn: str = "Fit on") -> Iterator[None]:
    """End with one line on stderr and an exit code in place of a traceback.

    `learn` begins the remedies of findings that ask for rows.
    """
    from ..table.errors import UsageError

    try:
        with warnings_as_notes(quiet, learn):
            yield
    except KeyboardInterrupt:
        echo("\ndipedl: stopped; no file was written", err=True)
        raise typer.Exit(STOPPED) from None
    except UsageError as error:
        fail(with_options(str(error)))
    except MemoryError:
        fail("not enough memory; fewer rows by --rows, or fewer columns by --drop", WRONG_DATA)
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in EXTRAS:
            raise
        fail(str(explain_missing(error, "this command")), WRONG_DATA)
    except PermissionError as error:
        name = error.filename or error_text(error)
        fail(f"{name}: no permission; ask its owner for it", WRONG_DATA)
    except (ValueError, TypeError, OSError) as error:
        text = " ".join([error_text(error), *getattr(error, "__notes__", [])])
        fail(with_options(text), WRONG_DATA)


@contextmanager
def warnings_as_notes(quiet: bool = False, learn: str = "Fit on") -> Iterator[None]:
    """Print a warning of the library without its file and line, and no other."""

    def note(message: Warning | str, *_: object, **__: object) -> None:
        from ...explanation import FindingWarning

        if isinstance(message, FindingWarning):
            message = FindingWarning(in_shell(message.args[0], learn))
        echo(f"note: {with_options(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not quiet:
            warnings.simplefilter("default", UserWarning)
        warnings.showwarning = note
        yield


def fail(message: str, code: int = WRONG_COMMAND) -> NoReturn:
    """Print one line on stderr, and end with an exit code."""
    echo(f"dipedl: {message}", err=True)
    raise typer.Exit(code)


def echo(text: object = "", *, err: bool = False) -> None:
    """Print a text of one line or more, in which names and classes cannot drive a terminal."""
    typer.echo("\n".join(map(one_line, str(text).split("\n"))), err=err)


def echo_json(value: Any) -> None:
    r"""Print a result for machines; what could drive a terminal stands as \u and four digits."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    typer.echo("".join(c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text))


@contextmanager
def show_rows(quiet: bool) -> Iterator[Callable[[int, float], None] | None]:
    """Yield a function of the rows so far and the share of the file that shows both on a line."""
    line, start = LiveLine(), time.perf_counter()

    def show(rows: int, done: float) -> None:
        spent = time.perf_counter() - start
        left = f", about {spent * (1 - done) / done:.0f} s left" if 0 < done < 1 else ""
        line.show(f"{rows:,} rows ({done:.0%}), {rows / spent:,.0f} rows/s{left}")

    with closing(line):
        yield None if quiet else show


@contextmanager
def show_classes(quiet: bool, model: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yield a function of the classes left out so far and all, which shows both and the time left.

    Its first call says what that will cost: a fit of a `model` for each class.
    """
    line, start = LiveLine(), time.perf_counter()

    def show(done: int, classes: int) -> None:
        from ..table.fit import REHEARSED, title

        if not done:
            fit = f"a fit of {title(model)} to at most {REHEARSED:,} rows, with its held-out parts"
            echo(f"Leaving {classes} classes out in turn: {classes} times {fit} ...", err=True)
            return
        left = (time.perf_counter() - start) * (classes - done) / done
        about = f", about {left:.0f} s left" if done < classes else ""
        line.show(f"{done} of {classes} classes{about}")

    with closing(line):
        yield None if quiet else show


def list_rejected(rows: Sequence[RejectedRow], total: int) -> None:
    """Name the first rows that were left out, on stderr."""
    list_first("refused", rows, total, "rows")


def list_first(what: str, found: Sequence[object], total: int, kind: str) -> None:
    """Name the first five of a total on stderr, and how many more of a kind there are."""
    for one in found[:5]:
        echo(f"{what}: {one}", err=True)
    if more := total - len(found[:5]):
        echo(f"{what}: {more:,} more {kind}", err=True)


# Messages of the library: options of the shell in place of arguments and calls

#: Arguments that errors of the library name in backquotes, and the values that they advise.
_NAMED = re.compile(
    r"`(target|model|drop|types|classes|labels|proba|time_column|group_column|gaps|delimiter|rows|extractor|columns|test|features|out|state|page|key|workers|partitions|density|like)`"
)
_ADVISED = re.compile(r"\b(drop|gaps|types|time_column|group_column|rows|row)=(?=[\[{'\"\dN])")
_SECOND = "the second one with --like and the file of the first"
#: Other arguments of the library -> options.
_OPTIONS = {
    r"\b(resume|overwrite)=True\b": r"--\1",
    r"\bcall fit again with the same work\b": "go on with --resume",
    r"\bfit both by partial_fit or dipedl\.apps\.large\.fit, with density=GDADensity\(\)": (
        f"fit the first one with --density gaussians, and {_SECOND}"
    ),
    r"\bfit the second with FrozenEstimator of the first one's( estimator_)?": f"fit {_SECOND}",
    r"\bdensity=GDADensity\(\)": "--density gaussians",
    r"\bfalse_alarm_rate=": "--false-alarms ",
    r"\bcost_(error|reject|unknown)(?= must\b)": r"--cost-\1",
    r"\bunknown(?= must\b)": "--unknown-share",
    r"\bbegin a new monitor\b": "begin anew with a --state that is not there",
    # A table has no weights, and says by --time-column alone what is held out.
    r", or count them by sample_weight\b| \(sample_weight counts rows: [^)]*\)": "",
    r"\bleave cv at its default or give a splitter that keeps copies together; ": "",
}


_HONEST = "{learn} more rows, or compare another --model."
_MORE = "{more}"
_UNFITTED = "Give --model a file that holds the classifier unfitted."
_LABELS = "Fit with a class in each row."
_OTHER_COLUMNS = "Give fit columns that say more of the rows."
_SHARES = "{learn} more rows of the rare classes, or compare another --model."
_LEAKS = "Look for leaks and mislabelled rows by `dipedl check`, or compare another --model."
_RANKS = "Go by flagged and p_value of `dipedl score`"

#: What to do, by the code of the finding; the remedy of any other code is as it is.
REMEDIES = {
    "calibration_in_sample": "{learn} more rows.",
    "density_frozen": _UNFITTED,
    "classifier_frozen": _UNFITTED,
    "calibration_copies": f"{_OTHER_COLUMNS} Until then ask for sets of a higher --coverage.",
    "calibration_given_to_fit": "Give score and report rows that the fit has not seen.",
    "calibration_too_few": f"{_MORE}, or with a higher --false-alarms than {{false_alarm_rate:g}}.",
    "calibration_small": f"{_MORE}, if the rates matter.",
    "calibration_one_class": "{learn} more rows of the other classes.",
    "labels_missing": _LABELS,
    "score_constant": _OTHER_COLUMNS,
    "density_constant": f"Look for constant columns by `dipedl check`. {_OTHER_COLUMNS}",
    "density_repeats_classifier": _OTHER_COLUMNS,
    "density_points_the_wrong_way": f"{_OTHER_COLUMNS} {{errors}}",
    "density_adds_nothing_on_errors": "{errors}",
    "density_informative": "{errors}",
    "evidence_never_moves": f"Fit with a higher --caution. {_RANKS}: they do not depend on it.",
    "evidence_moves_known_inputs": "Fit with a lower --caution, or read p_ columns as too modest.",
    "evidence_changes_labels": f"{_RANKS}, and read label with care.",
    "temperature_at_bound": _LEAKS,
    "temperature_far_from_one": "Use the p_ columns of `dipedl score`, not the bare classifier.",
    "classifier_overconfident": _HONEST,
    "classifier_timid": _HONEST,
    "one_class_takes_all": _SHARES,
    "class_never_predicted": _SHARES,
    "class_nearly_lost": _SHARES,
    "sets_leave_out_class": "Ask for sets by class: `dipedl score --by-class`.",
    "class_with_few_rows": "{learn} more rows of such a class.",
    "class_drives_alarms": "The rate of false alarms holds over all rows, not within each class. "
    "More rows of that class even it out.",
    "intervals_unsupported": "{learn} more rows of every class.",
    "intervals_of_seen_rows": _UNFITTED,
    "intervals_of_few_labels": _HONEST,
    "intervals_of_frozen_classifier": _UNFITTED,
    "density_features": "Leave these columns out by --drop, or make something of them that comes "
    "again.",
    "unknown_classes": "In Python: {remedy}",
    "one_part_drives_alarms": "Nothing needs to be done: one part says nearly what all of them do.",
}


def diagnosis_in_shell(diagnosis: Diagnosis, in_parts: bool = False) -> Diagnosis:
    """Return a diagnosis with remedies that the shell has, for a fit `in_parts` or in memory."""
    findings = (in_shell(found, in_parts=in_parts) for found in diagnosis.findings)
    return replace(diagnosis, findings=tuple(findings))


def in_shell(found: Finding, learn: str = "Fit on", in_parts: bool = False) -> Finding:
    """Return the finding with a remedy of the shell; `learn` begins those that ask for rows.

    Of a fit `in_parts` a tenth of the rows is held out.
    """
    from ..table.evaluate import ERRORS, RANKINGS

    remedy = found.remedy
    if remedy and found.code in REMEDIES:
        ranking = RANKINGS.get(str(found.numbers.get("answers_ranked_by")))
        errors = ERRORS.format(ranking=ranking)
        needed = int(found.numbers.get("needed", 0))
        more = f"{learn} at least {needed} rows"
        if in_parts:
            more = f"{learn} about {10 * needed:,} rows, of which a tenth is held out"
        remedy = REMEDIES[found.code].format_map(
            {**found.numbers, "remedy": remedy, "learn": learn, "errors": errors, "more": more}
        )
    return replace(found, text=with_options(found.text), remedy=with_options(remedy))


def with_options(text: str) -> str:
    """Return a text of the library with its arguments as the options that give them."""
    for argument, option in _OPTIONS.items():
        text = re.sub(argument, option, text)
    text = _NAMED.sub(lambda found: _option(found[1]), text)
    parts, last = [], 0
    for found in _ADVISED.finditer(text):
        if found.start() < last:
            continue
        for end in range(found.end() + 1, len(text) + 1):
            try:
                value = literal_eval(text[found.end() : end])
            except (ValueError, SyntaxError):
                continue
            if not text[end : end + 1].isalnum():
                parts += [text[last : found.start()], f"{_option(found[1])} {_as_value(value)}"]
                last = end
                break
    return "".join(parts) + text[last:]


def _option(argument: str) -> str:
    return f"--{argument.replace('_', '-')}"


def _as_value(value: Any) -> str:
    if isinstance(value, dict):
        return as_typed(f"{name}={of}" for name, of in value.items())
    if isinstance(value, list):
        return as_typed(value)
    return "0" if value is None else shlex.quote(str(value))


def as_typed(names: Iterable[object]) -> str:
    """Return names as they are typed: between commas, and in quotes where needed."""
    line = io.StringIO()
    csv.writer(line).writerow(names)
    return shlex.quote(line.getvalue().removesuffix("\r\n"))
