"""Answers to a data set of any size: each part once, each row accounted for."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import joblib
import numpy as np
import pandas as pd

from ...classifier import DIPClassifier
from ...io import save
from ...writing.files import sha256_of
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
from .answers_folder import AnswersFolder, identity
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
