"""Folders of results: arrays of each trained part, and one JSON line for each (method, seed).

::

    ROOT/<suite>/<profile>/rows.jsonl
    ROOT/<suite>/<profile>/arrays/<name>/<config hash>/<seed>/<split>.npz
                                                             /receipt.json
                                                             /network.safetensors
                                                             /SHA256SUMS

A folder of arrays appears whole or not at all: it is written beside its place and renamed. One
without a receipt waits to be made again. Name, config hash and seed are the `key` of a part.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from dipedl.writing import whole_file, write_file

from ..names import run_command
from .files import damaged_files, read_file, seal
from .rows import Row, append_row, as_line, key_of, parse_rows, replace_row, rows_in

__all__ = ["Store"]

Arrays = dict[str, dict[str, np.ndarray]]

_NETWORK, _RECEIPT = "network.safetensors", "receipt.json"


class Store:
    """Results of one suite with one profile, in the folder `root` of all results."""

    def __init__(self, root: str | os.PathLike[str], suite: str, profile: str) -> None:
        self.root, self.suite, self.profile = Path(root), suite, profile
        self.folder = self.root / suite / profile
        self.rows_file = self.folder / "rows.jsonl"
        self._keys: tuple[tuple[int, ...], frozenset[tuple[Any, ...]]] | None = None

    @property
    def features(self) -> Path:
        """Folder of features of spectra, which all suites share."""
        return self.root / "features"

    def rows(self) -> list[Row]:
        """All rows, see `rows_in`."""
        return rows_in(self.folder)

    def missing(self, heads: Iterable[Mapping[str, Any]]) -> dict[str, Row]:
        """Return heads of rows that are not there, by the name of their method."""
        there: frozenset[tuple[Any, ...]] = frozenset()
        if self.rows_file.exists():  # read again only when it has changed
            stat = self.rows_file.stat()
            state = stat.st_ino, stat.st_size, stat.st_mtime_ns
            if self._keys is None or self._keys[0] != state:
                self._keys = state, frozenset(map(key_of, parse_rows(self.rows_file)[0]))
            there = self._keys[1]
        return {head["method"]: dict(head) for head in heads if key_of(head) not in there}

    def append(self, row: Mapping[str, Any]) -> bool:
        """Write one row to the end, safe against a kill; False if a row of its key is there."""
        with _explain_no_space(self.folder):
            return append_row(self.rows_file, row)

    def replace(self, row: Mapping[str, Any]) -> list[Row]:
        """Write one row in place of those of its line and seed, of any config; return these."""
        with _explain_no_space(self.folder):
            return replace_row(self.rows_file, row)

    def arrays_folder(self, *key: str | int) -> Path:
        """Return the folder of the arrays of a trained part."""
        return self.folder.joinpath("arrays", *map(str, key))

    def checkpoint(self, *key: str | int) -> Path:
        """Return the file of the state of a training, from which it goes on after a kill."""
        folder = self.arrays_folder(*key)
        return folder.with_name(f".{folder.name}.training") / "checkpoint"

    def forget_checkpoint(self, *key: str | int) -> None:
        """Remove the state of a training."""
        shutil.rmtree(self.checkpoint(*key).parent, ignore_errors=True)

    def has_arrays(self, *key: str | int) -> bool:
        """Return whether the arrays of a trained part are there, all of them."""
        return (self.arrays_folder(*key) / _RECEIPT).exists()

    def receipt(self, *key: str | int) -> dict[str, Any]:
        """Return the cost of training and scoring of a part."""
        receipt: dict[str, Any] = read_file(self.arrays_folder(*key) / _RECEIPT)
        return receipt

    def damage(self, *key: str | int) -> list[str]:
        """Return the damage of the stored arrays of a part, file by file; all of them are read."""
        folder = self.arrays_folder(*key)
        return damaged_files(folder) if folder.is_dir() else []

    def forget_arrays(self, *key: str | int) -> None:
        """Take the receipt away: the arrays wait to be made again, also for other runs."""
        (self.arrays_folder(*key) / _RECEIPT).unlink(missing_ok=True)

    def is_waiting(self, *key: str | int) -> bool:
        """Return whether arrays of a part wait to be made again; not if they have been deleted."""
        return self.arrays_folder(*key).is_dir() and not self.has_arrays(*key)

    def save_arrays(
        self,
        name: str,
        config_hash: str,
        seed: int,
        arrays: Mapping[str, Mapping[str, np.ndarray]],
        receipt: Mapping[str, Any],
        network: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        """Write the arrays of a part, its receipt and its weights; all of it appears at once."""
        folder = self.arrays_folder(name, config_hash, seed)
        partial = folder.with_name(f".{folder.name}.partial")
        with _explain_no_space(self.folder):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for split, named in arrays.items():
                with whole_file(partial / f"{split.replace('/', '__')}.npz") as file:
                    np.savez(file, **dict(named))  # type: ignore[arg-type]
            if network is not None:
                from safetensors.numpy import save

                write_file(partial / _NETWORK, save(dict(network)))
            write_file(partial / _RECEIPT, as_line(receipt))
            seal(partial)
            shutil.rmtree(folder, ignore_errors=True)
            partial.replace(folder)

    def load(self, *key: str | int) -> Arrays:
        """Arrays of a part: split -> name -> array."""
        folder = self.arrays_folder(*key)
        files = sorted(folder.glob("*.npz"))
        if not files:
            raise FileNotFoundError(f"no arrays in {str(folder)!r}: rows alone make tables")
        # the names of sets may hold "__" too
        return {file.stem.replace("__", "/", 1): read_file(file) for file in files}

    def network(self, *key: str | int) -> dict[str, np.ndarray]:
        """Weights of a trained network by name."""
        weights: dict[str, np.ndarray] = read_file(self.arrays_folder(*key) / _NETWORK)
        return weights

    def arrays_of(self, row: Mapping[str, Any], part: str = "method") -> Arrays:
        """Return the arrays of a row: split -> name -> array.

        `part` is "method" for its own predictions, or "classifier" or "density" for the arrays of
        the trained part below it. LookupError if it has none; FileNotFoundError if the arrays have
        been deleted.

        Returns
        -------
        dict of str to dict of str to ndarray
            Splits: "validation", "test", and "ood/<name>" for each OOD set; parts below a method
            have "train" too. Names of a method: "probabilities" (n, k), "uncertainty" (n,), higher
            is less sure; evidential ones also "concentration" (n, k) and, where the method has it,
            "log_evidence" (n,). Of a classifier: "probabilities" (n, k), "logits" (n, k) and
            "features" (n, p), where it has them. Of a density: "log_density" (n,). Every split with
            labels has "y" (n,).
        """
        parts = {"method": {"name": row["method"], **row}, **row["parts"]}
        if part not in parts:
            known = sorted(row["parts"])
            raise LookupError(f"method {row['method']!r} has no part {part!r}; it has {known}")
        try:
            return self.load(parts[part]["name"], parts[part]["config_hash"], row["seed"])
        except FileNotFoundError as error:
            options = "--methods", row["method"], "--out", "FOLDER"
            raise FileNotFoundError(
                f"{error}. Make rows and arrays in a folder of their own, all seeds of the suite: "
                f"{run_command(self.suite, self.profile, *options)}, and name it with --out"
            ) from error


@contextmanager
def _explain_no_space(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise OSError(
            error.errno,
            f"no space left for results in {str(folder)!r}: free some, or choose another folder "
            "with --out; what was finished is kept, and the same command continues",
        ) from error
