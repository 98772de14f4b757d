"""A folder of answers, a file for each part: what is finished stays, and nothing is mixed."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ...protocols import optional
from ...writing.files import sha256_of, write_file
from ..table.errors import UserError
from .parts import Part

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
