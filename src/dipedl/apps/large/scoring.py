"""Answers to a data set of any size: each part once, each row accounted for."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import joblib
import numpy as np
import pandas as pd

from ...classifier import DIPClassifier
from ...io import save
from ...protocols import optional
from ...writing.files import sha256_of, write_file
from ..table.columns import check_known
from ..table.errors import UserError, check_columns
from ..table.reading import RejectedRow
from ..table.score import (
    FIELDS,
    Progress,
    ScoreRequest,
    ScoreResult,
    answer_rows,
    check_copied_columns,
)
from ..table.table_model import TableModel, plain_model, read_model
from ..table.writing import table_writer
from .engines import Engine, LocalEngine
from .parts import Part, Rows, parts_of, with_checksums

#: Rows that are answered at once.
BATCH = 20_000
#: What is answered of each row.
AT_SCALE = ScoreRequest(fields=(*FIELDS, "log_evidence"), reasons="none")


@dataclass
class Accounting(ScoreResult):
    """Rows of a whole data set: ``rows == answered + refused``.

    Attributes
    ----------
    parts, resumed : int
        Parts of the data set, and those that an earlier run had finished.
    failed : dict
        Parts that could not be answered, with the reason; their rows count as refused, where a
        file tells how many it has.
    """

    parts: int = 0
    resumed: int = 0
    failed: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: Accounting) -> Accounting:
        """The rows of both."""
        mine, theirs = vars(self), vars(other)
        numbers = {name: n + theirs[name] for name, n in mine.items() if isinstance(n, int)}
        return Accounting(
            **numbers,
            by_label=dict(Counter(self.by_label) + Counter(other.by_label)),
            first_refused=[*self.first_refused, *other.first_refused][:5],
            failed=self.failed | other.failed,
        )


def score(
    model: str | Path | TableModel | DIPClassifier,
    data: Any,
    out: str | Path,
    *,
    engine: Engine | None = None,
    partitions: int | str | None = None,
    wanted: ScoreRequest = AT_SCALE,
    resume: bool = False,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Accounting:
    """Answer every row of a data set into a folder of Parquet files, one for each part.

    Parameters
    ----------
    model : path-like, TableModel or DIPClassifier
        A file of ``dipedl fit``, or a fitted model. One that was not fitted on a table takes the
        columns of numbers it was fitted on, by name, or arrays.
    data : path-like, str, frame or array
        As `parts_of` takes it.
    out : path-like
        Folder on this machine, or one that all machines of the engine share. ``_accounting.json``
        is there once all is done, ``_refused`` holds refused rows with reasons.
    engine : Engine, optional
        Default: ``LocalEngine()``.
    partitions : int or str, optional
        Rows or bytes of a part, as in `parts_of`.
    wanted : ScoreRequest, optional
        What is answered of each row; default: all but reasons.
    resume, overwrite : bool, default=False
        Finish the answers of an earlier run that are there already, or begin again. What was
        answered stays where the files of the data and of the answers have the checksums they had.
    progress : callable, optional
        Called with the rows answered so far and their share.

    Returns
    -------
    Accounting
        A part that cannot be read or answered is in ``failed``, and the others are answered.

    Raises
    ------
    UserError
        If `out` holds something else, or answers by another model or to other data, or cannot be
        written: then every finished part is there, and ``resume=True`` goes on.
    """
    fitted, parts = fitted_table(model), parts_of(data, partitions)
    check_copied_columns(wanted, fitted.classes)
    engine, folder = engine or LocalEngine(), AnswersFolder(Path(out).absolute())
    folder.check(resume, overwrite)
    parts = with_checksums(parts, engine)
    known = {part.name: identity(part) for part in parts}
    manifest = {"model": _checksum(model), "wanted": asdict(wanted), "parts": known}
    # By the numbers of the parts: in whatever order they finish, the sum is the same.
    found: dict[int, Accounting] = {}
    with folder.open(manifest, overwrite):
        with ThreadPoolExecutor(8) as pool:
            for i, record in enumerate(pool.map(folder.record, parts)):
                if record is not None:
                    first = [RejectedRow(*one) for one in record.pop("first_refused")]
                    found[i] = replace(Accounting(**record, first_refused=first), resumed=1)
        numbers = [i for i in range(len(parts)) if i not in found]
        todo = [parts[i] for i in numbers]
        total, rows = sum(part.rows for part in todo), 0
        for at, one in engine.map(Scorer(fitted, folder, wanted), todo):
            found[numbers[at]] = one
            rows += one.rows
            if progress is not None:
                progress(rows, rows / total if total else 0.0)
        whole = sum((found[i] for i in sorted(found)), Accounting())
        folder.total(asdict(whole))
    return whole


class PartFails(Exception):
    """A part cannot be read or answered; the text says why."""


class Scorer:
    """Answers a part: what an engine calls on each worker."""

    def __init__(self, model: TableModel, folder: AnswersFolder, wanted: ScoreRequest) -> None:
        self.model = model
        self.folder = folder
        self.wanted = wanted

    def __call__(self, part: Part) -> Accounting:
        """Write the answers, and the refused rows, of a part; then its record."""
        self.folder.remove([part.name])
        try:
            found = self._answer(part)
        except PartFails as error:
            return self.lost(part, str(error))
        self.folder.finish(part, asdict(found))
        return found

    def lost(self, part: Part, why: str) -> Accounting:
        """Return the result of a part that cannot be answered."""
        n, first = part.rows, [RejectedRow(part.first + 1, "", why)] if part.rows else []
        failed = {part.name: why}
        return Accounting(n, refused=n, first_refused=first, parts=1, failed=failed)

    def pieces(self, part: Part) -> Iterator[tuple[pd.DataFrame, list[RejectedRow]]]:
        """Answers and refused rows of some rows of a part after others."""
        number = part.first + 1
        try:
            for rows in part.batches(BATCH):
                frame = self._frame(rows)
                check_known(self.model.columns, frame.columns, part.name)
                check_columns("columns", self.wanted.columns, frame.columns, part.name)
                numbers = np.arange(number, number + len(frame))
                number += len(frame)
                if len(frame):
                    yield answer_rows(self.model, frame, numbers, self.wanted)
        except MemoryError as error:
            raise PartFails("memory ran out: fewer workers have more of it each") from error
        except (ValueError, TypeError, KeyError) as error:
            raise PartFails(str(error)) from error

    def _answer(self, part: Part) -> Accounting:
        count, refused_rows = Accounting(parts=1), []
        with ExitStack() as files:
            write = None
            for made, refused in self.pieces(part):
                if len(made):
                    write = write or files.enter_context(
                        table_writer(self.folder.answers(part.name))
                    )
                    write(made)
                count.add(made, refused)
                refused_rows += refused
        if refused_rows:
            with table_writer(self.folder.refused(part.name)) as write_refused:
                write_refused(pd.DataFrame(refused_rows))
        return count

    def _frame(self, rows: Rows) -> pd.DataFrame:
        names = [column.name for column in self.model.columns if column.used]
        if isinstance(rows, pd.DataFrame):
            numbered = list(rows.columns) == list(map(str, range(len(names))))
            return rows.set_axis(names, axis=1) if numbered and not self.model.named else rows
        X = rows.reshape(len(rows), -1)
        if X.shape[1] != len(names):
            raise UserError(f"the rows have {X.shape[1]} columns, and the model knows {len(names)}")
        return pd.DataFrame(X, columns=names)


def fitted_table(model: str | Path | TableModel | DIPClassifier) -> TableModel:
    """A model with its columns; of one that was not fitted on a table they are numbers."""
    if isinstance(model, str | Path):
        return read_model(Path(model))
    if isinstance(model, TableModel):
        return model
    return plain_model(model, "X")


def _checksum(model: str | Path | TableModel | DIPClassifier) -> str:
    """Hexadecimal; another text is another model."""
    if isinstance(model, str | Path):
        return sha256_of(Path(model))
    fitted = fitted_table(model)
    how = json.dumps([list(map(asdict, fitted.columns)), fitted.facts])
    return str(joblib.hash([_content(fitted.classifier), how]))


def _content(classifier: DIPClassifier) -> str:
    """Hexadecimal, of the file that `save` writes: copies, and what predicting keeps, are equal."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "model.dipedl")
        try:
            save(classifier, file)
        except (TypeError, ImportError):  # it holds what cannot be saved, or nothing can be
            return str(joblib.hash(classifier))
        return sha256_of(file)


# The folder of answers: what is finished stays, and nothing is mixed

_MANIFEST, _TOTAL, _LOCK = "_dipedl.json", "_accounting.json", "_lock"
_RECORDS, _REFUSED = "_parts", "_refused"


class _Files(NamedTuple):
    """Paths of the answers to a part, of its record and of its refused rows."""

    answers: Path
    record: Path
    refused: Path

    def checksums(self) -> list[str | None]:
        """SHA-256 of answers and refused rows; None where there is no such file."""
        return [sha256_of(at) if at.is_file() else None for at in (self.answers, self.refused)]


@dataclass(frozen=True)
class AnswersFolder:
    """Folder of the answers to each part, its refused rows, and a record once both are written.

    Readers of data sets pass over names that begin with ``_``: to them the folder holds answers
    alone.
    """

    path: Path

    def answers(self, name: str) -> Path:
        """The file of answers to a part."""
        return _in_folder(self._files(name).answers)

    def refused(self, name: str) -> Path:
        """The file that lists refused rows of a part."""
        return _in_folder(self._files(name).refused)

    def finish(self, part: Part, record: Mapping[str, Any]) -> None:
        """Record that a part is finished: last of all, so that a kill leaves it to be done."""
        files = self._files(part.name)
        content = {**record, "files": files.checksums(), "part": identity(part)}
        write_file(_in_folder(files.record), _seal(content))

    def record(self, part: Part) -> dict[str, Any] | None:
        """The record of a part; None if it is not finished, was another, or a file is damaged."""
        files = self._files(part.name)
        found = _unseal(files.record)
        if found is None:
            return None
        sums, was = found.pop("files"), found.pop("part")
        return found if was == identity(part) and files.checksums() == sums else None

    def total(self, values: Mapping[str, Any]) -> None:
        """Write the sums over all parts."""
        write_file(self.path / _TOTAL, json.dumps(values, indent=1, ensure_ascii=False))

    @contextmanager
    def open(self, manifest: dict[str, Any], overwrite: bool) -> Iterator[None]:
        """Make the folder, or go on with it, after `check`; UserError if it holds other answers.

        `manifest` says what makes the answers what they are: "model", "wanted" and "parts".
        """
        filelock = optional("filelock", "answers in a folder")
        self.path.mkdir(exist_ok=True)
        try:
            with filelock.FileLock(self.path / _LOCK, timeout=0):
                if overwrite:
                    self._clear()
                self._begin(json.loads(json.dumps(manifest)))
                yield
        except filelock.Timeout as error:
            raise UserError(
                f"{self.path} is being written by another process; wait for it"
            ) from error

    def check(self, resume: bool, overwrite: bool) -> None:
        """UserError if there can be no such folder, or it holds what is not to be changed."""
        path, there = self.path, self.path.exists()
        if there and not path.is_dir():
            raise UserError(f"{path} is a file; a data set is answered into a folder: name one")
        if not there and not path.parent.is_dir():
            raise UserError(f"the folder {path.parent} does not exist; create it")
        if not there or not any(path.iterdir()):
            return
        if not (path / _MANIFEST).is_file():
            raise UserError(f"{path} holds other files; name a new folder for the answers")
        self._manifest()
        if not (resume or overwrite):
            raise UserError(
                f"{path} holds answers already: resume=True finishes them, overwrite=True begins "
                "again"
            )

    def _begin(self, manifest: dict[str, Any]) -> None:
        path = self.path / _MANIFEST
        if path.is_file():
            old, new = self._manifest(), manifest["parts"]
            why = _difference(old, manifest)
            if why:
                raise UserError(
                    f"{self.path} cannot be resumed: {why}; overwrite=True begins again, or name "
                    "another folder"
                )
            self.remove(name for name, was in old["parts"].items() if new.get(name) != was)
        for left_over in self.path.rglob(".dipedl-*.part"):
            left_over.unlink()
        (self.path / _TOTAL).unlink(missing_ok=True)
        write_file(path, _seal(manifest))

    def _manifest(self) -> dict[str, Any]:
        """Return the manifest of an earlier run; UserError if it is damaged."""
        found = _unseal(self.path / _MANIFEST)
        # The files of these names may be deleted.
        if found is None or any(".." in Path(f"/{name}").parts for name in found["parts"]):
            raise UserError(
                f"{self.path / _MANIFEST} is damaged, so that nothing in its folder can be "
                "believed: delete the folder, or name another for the answers"
            )
        return found

    def _clear(self) -> None:
        """Delete what an earlier run has written, and nothing else."""
        manifest, records = self.path / _MANIFEST, self.path / _RECORDS
        known = self._manifest()["parts"] if manifest.is_file() else {}
        found = (record.relative_to(records) for record in records.rglob("*.json"))
        self.remove([at.as_posix().removesuffix(".json") for at in found])
        self.remove(known)
        for folder in (_RECORDS, _REFUSED):
            shutil.rmtree(self.path / folder, ignore_errors=True)
        manifest.unlink(missing_ok=True)

    def remove(self, names: Iterable[str]) -> None:
        """Delete the files of parts, whether they are finished or not."""
        for file in (file for name in names for file in self._files(name)):
            file.unlink(missing_ok=True)

    def _files(self, name: str) -> _Files:
        answers = f"{name}.parquet"
        record, refused = f"{_RECORDS}/{name}.json", f"{_REFUSED}/{answers}"
        return _Files(self.path / answers, self.path / record, self.path / refused)


def identity(part: Part) -> list[Any]:
    """Return what a later run must find again of a part, as JSON gives it back."""
    return [part.first, part.rows, part.origin, bool(part.trouble)]


def _difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the reason why a run cannot go on with the answers of an earlier one, or ""."""
    if old["model"] != new["model"]:
        return "its answers are by another model"
    if old["wanted"] != new["wanted"]:
        return "other columns, sets or reasons were wanted"
    # A file that could not be read may have been mended, and then it may have several parts.
    both = [*old["parts"].values(), *new["parts"].values()]
    mended = {_file(origin) for _, _, origin, trouble in both if trouble}
    parts = [
        {name: of for name, of in one["parts"].items() if _file(of[2]) not in mended}
        for one in (old, new)
    ]
    if {of[2] for of in parts[0].values()} == {of[2] for of in parts[1].values()}:
        return "" if parts[0] == parts[1] else "the data are cut into parts of another size"
    changed = sorted(n for n in {**parts[0], **parts[1]} if parts[0].get(n) != parts[1].get(n))
    return f"the data have changed since, first in {changed[0]!r}"


def _file(origin: str) -> str:
    """The name of the file of a part: its origin without the checksum."""
    return origin.rpartition(" ")[0]


def _seal(values: Mapping[str, Any]) -> str:
    """JSON with a checksum in front."""
    text = json.dumps(values)
    return f"{sha256(text.encode()).hexdigest()} {text}"


def _unseal(path: Path) -> dict[str, Any] | None:
    """Return the values in a file of `_seal`; None if it is missing or damaged."""
    content = path.read_bytes() if path.is_file() else b""
    checksum, _, text = content.partition(b" ")
    if checksum != sha256(text).hexdigest().encode():
        return None
    found: dict[str, Any] = json.loads(text)
    return found


def _in_folder(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path
