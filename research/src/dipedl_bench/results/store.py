"""Where results lie: arrays of each trained part, and one JSON line for each (method, seed).

::

    ROOT/<suite>/<profile>/rows.jsonl
    ROOT/<suite>/<profile>/arrays/<name>/<config hash>/<seed>/<split>.npz
                                                             /receipt.json
                                                             /network.safetensors
                                                             /SHA256SUMS

A folder of arrays appears whole or not at all: it is written beside its place and renamed. One
without a receipt waits to be made again.
"""

from __future__ import annotations

import errno
import os
import shutil
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..writing import whole_file, write_file
from .damage import damaged_files, read_json, read_npz, read_weights, seal
from .rows import RowFile, as_line

if TYPE_CHECKING:
    from pandas import DataFrame

__all__ = ["PARTS", "Store", "default_root", "load_arrays", "load_rows", "make_root", "read_rows"]

Arrays = dict[str, dict[str, np.ndarray]]

_NETWORK, _RECEIPT = "network.safetensors", "receipt.json"
#: What arrays a row has: those of the method itself, and the trained parts below it.
PARTS = ("method", "classifier", "density")


def default_root() -> Path:
    """Folder of results: the environment variable ``DIPEDL_BENCH``, else ``./bench-results``."""
    return Path(os.environ.get("DIPEDL_BENCH") or "bench-results")


def make_root(root: Path) -> None:
    """Make the folder of all results if it is missing; an OSError names --out if it cannot be."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        why = "" if os.access(root, os.W_OK | os.X_OK) else os.strerror(errno.EACCES)
    except OSError as error:
        why = error.strerror or str(error)
    if why:
        raise OSError(
            errno.EACCES, f"--out must be a folder that can be written to, got {str(root)!r}: {why}"
        )


def load_rows(
    suite: str,
    profile: str | None = None,
    out: str | os.PathLike[str] | None = None,
    *,
    file: str | None = None,
) -> list[dict[str, Any]]:
    """Rows of a suite, in the order in which they were written.

    `profile` None gives those of all profiles; `out` is the root of the results, by default
    ``DIPEDL_BENCH``, else ``./bench-results``. FileNotFoundError if there are none of this suite
    (or profile), with the command that makes some, of the `file` of a suite of your own; a
    UserWarning if the last line is torn, which is left out.

    Returns
    -------
    list of dict
        One dict per row: "suite", "profile", "method", "title", "seed", "config", "config_hash",
        "metrics" (name to float), "intervals" (name to [low, high], bootstrap over the test rows),
        "baselines" (name to the AUPR of guessing), "n" (rows of each split), "seconds" ({"train",
        "score"}, with all parts below the method), "cpu_seconds", "peak_memory_mb",
        "forward_passes", "n_parameters", "parts" (name, hash and cost of each trained part), and
        the receipt: "versions", "commit", "device", "instructions", "threads", "time". The latest
        config of a (method, seed) comes last.
    """
    folder = Path(out or default_root()) / suite
    pattern = "*" if profile is None else profile
    files = sorted(folder.glob(f"{pattern}/rows.jsonl"))
    stores = [Store(out or default_root(), suite, path.parent.name) for path in files]
    rows = [row for store in stores for row in store.rows()]
    if not rows:
        command = f"dipedl-bench run {file or suite} --profile {profile or 'PROFILE'}"
        command += f" --out {out}" if out else ""
        published = Path("results", "bench")
        elsewhere = (published / suite).is_dir() and published.resolve() != folder.parent.resolve()
        named = f", or name their folder with --out{f', such as {published}' if elsewhere else ''}"
        raise FileNotFoundError(
            f"no results of suite {suite!r}{f', profile {profile!r},' if profile else ''} in "
            f"{str(folder)!r}; make some with: {command}{named if elsewhere or not out else ''}"
        )
    return rows


def read_rows(folder: str | os.PathLike[str] | None = None) -> DataFrame:
    """Return all rows below a folder as a frame, in the order in which they were written.

    `folder` is the root of all results, the folder of a suite, or that of a suite and profile;
    default: ``DIPEDL_BENCH``, else ``./bench-results``. FileNotFoundError if there are no rows.

    Returns
    -------
    DataFrame
        One line for each row, whatever its suite: "suite", "profile", "dataset", "classifier",
        "method", "title", "group", "seed", "config_hash", the receipt, and one column for each
        number: "metrics.accuracy", "metrics.auroc/kmnist", "low.auroc/kmnist" and
        "high.auroc/kmnist" (ends of the interval over test rows), "baselines.aupr/kmnist",
        "n.test", "seconds.train", "cpu_seconds.train"; NaN where a row does not have it. "config",
        "own", "parts" and "versions" hold a dict, `row` the whole row as a dict. In a suite with
        one data set a profile, "dataset" is that of the profile, "classifier" the trained part
        below the method, or "", and "group" is "".

    Examples
    --------
    >>> from dipedl_bench import read_rows
    >>> rows = read_rows("research/results/bench/mnist")  # doctest: +SKIP
    >>> rows.groupby("method")["metrics.accuracy"].mean()  # doctest: +SKIP
    """
    from pandas import DataFrame

    folder = Path(folder or default_root())
    files = sorted(folder.rglob("rows.jsonl"))
    rows = [row for file in files for row in RowFile(file).read()[0]]
    if not rows:
        raise FileNotFoundError(f"no rows in {str(folder)!r}; name the folder of results of a run")
    return DataFrame([_as_columns(row) for row in rows])


#: Tables of numbers in a row, a column for each number.
_NUMBERS = ("metrics", "baselines", "n", "seconds", "cpu_seconds")


def _as_columns(row: dict[str, Any]) -> dict[str, Any]:
    found = {"suite": row["suite"], "profile": row["profile"], "dataset": "", "classifier": ""}
    if "dataset" not in row:
        found["dataset"] = row["config"].get("data", {}).get("dataset", "")
        found["classifier"] = row.get("parts", {}).get("classifier", {}).get("name", "")
    found |= {"method": row["method"], "title": row["title"], "group": "", "refused": ""}
    found |= {k: v for k, v in row.items() if k not in (*_NUMBERS, "intervals")}
    for table in _NUMBERS:
        found |= {f"{table}.{name}": value for name, value in row.get(table, {}).items()}
    for name, (low, high) in row["intervals"].items():
        found |= {f"low.{name}": low, f"high.{name}": high}
    return found | {"row": row}


def load_arrays(
    suite: str,
    profile: str,
    method: str,
    seed: int,
    out: str | os.PathLike[str] | None = None,
    *,
    part: str = "method",
) -> Arrays:
    """Per-sample arrays of a row: split -> name -> array.

    Of several configs of the method, the latest. `part` is "method" for its own predictions, or
    "classifier" or "density" for the arrays of the trained part below it; `out` as of `load_rows`.
    LookupError if there is no such row or part; FileNotFoundError if the arrays have been deleted.

    Returns
    -------
    dict of str to dict of str to ndarray
        Splits: "validation", "test", and "ood/<name>" for each OOD set; parts below a method have
        "train" too. Names of a method: "probabilities" (n, k), "uncertainty" (n,), higher is less
        sure; evidential ones also "concentration" (n, k) and, where the method has it,
        "log_evidence" (n,). Of a classifier: "probabilities" (n, k), "logits" (n, k) and "features"
        (n, p), where it has them. Of a density: "log_density" (n,). Every split with labels has
        "y" (n,).
    """
    if part not in PARTS:
        raise ValueError(f"part must be one of {list(PARTS)}, got {part!r}")
    store = Store(out or default_root(), suite, profile)
    rows = [row for row in store.rows() if (row["method"], row["seed"]) == (method, seed)]
    if not rows:
        known = sorted({(row["method"], row["seed"]) for row in store.rows()})
        raise LookupError(
            f"no row of method {method!r} with seed {seed} in {str(store.folder)!r}; it has {known}"
        )
    return store.arrays_of(rows[-1], part)


class Store:
    """Results of one suite with one profile, in the folder `root` of all results."""

    def __init__(self, root: str | os.PathLike[str], suite: str, profile: str) -> None:
        self.root, self.suite, self.profile = Path(root), suite, profile
        self.folder = Path(root) / suite / profile
        self.rows_file = self.folder / "rows.jsonl"
        self._rows = RowFile(self.rows_file)

    def rows(self) -> list[dict[str, Any]]:
        """All whole rows; a torn last line is left out with a warning."""
        found, torn = self._rows.read()
        if torn:
            warnings.warn(
                f"{str(self.rows_file)!r} has a torn last line ({torn} bytes, a run was killed "
                "while it wrote); it is left out, and the next run computes that row again",
                stacklevel=2,
            )
        for row in found:
            if (row["suite"], row["profile"]) != (self.suite, self.profile):
                raise ValueError(
                    f"{str(self.rows_file)!r} holds a row of suite {row['suite']!r}, profile "
                    f"{row['profile']!r}; to put rows where they belong, move the file and run: "
                    "dipedl-bench merge FILE"
                )
        return found

    def has_row(self, method: str, config_hash: str, seed: int) -> bool:
        """Return whether there is a row of this method, with these settings and this seed."""
        return (self.suite, self.profile, method, config_hash, seed) in self._rows.keys()

    def missing(self, heads: Iterable[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        """Return heads of rows that are not there, by the name of their method."""
        return {
            head["method"]: dict(head)
            for head in heads
            if not self.has_row(head["method"], head["config_hash"], head["seed"])
        }

    def append(self, row: Mapping[str, Any]) -> bool:
        """Write one row to the end, safe against a kill; False if a row of its key is there."""
        with _no_space_explained(self.folder):
            return self._rows.append(row)

    def change_rows(self, change: Callable[[dict[str, Any]], Mapping[str, Any]]) -> int:
        """Write all rows anew, changed, at once or not at all; gives how many there are."""
        with _no_space_explained(self.folder):
            return self._rows.change(change)

    def arrays_folder(self, name: str, config_hash: str, seed: int) -> Path:
        """Where the arrays of a trained part lie."""
        return self.folder / "arrays" / name / config_hash / str(seed)

    def checkpoint(self, name: str, config_hash: str, seed: int) -> Path:
        """Where the training of a part leaves its state, so that it goes on after a kill."""
        folder = self.arrays_folder(name, config_hash, seed)
        return folder.with_name(f".{folder.name}.training") / "checkpoint"

    def forget_checkpoint(self, name: str, config_hash: str, seed: int) -> None:
        """Remove the state of a training."""
        shutil.rmtree(self.checkpoint(name, config_hash, seed).parent, ignore_errors=True)

    def has_arrays(self, name: str, config_hash: str, seed: int) -> bool:
        """Return whether the arrays of a trained part are there, all of them."""
        return (self.arrays_folder(name, config_hash, seed) / _RECEIPT).exists()

    def receipt(self, name: str, config_hash: str, seed: int) -> dict[str, Any]:
        """Return the cost of training and scoring of a part."""
        path = self.arrays_folder(name, config_hash, seed) / _RECEIPT
        receipt: dict[str, Any] = read_json(path)
        return receipt

    def damage(self, name: str, config_hash: str, seed: int) -> list[str]:
        """Return the damage of the stored arrays of a part, file by file; all of them are read."""
        folder = self.arrays_folder(name, config_hash, seed)
        if not folder.is_dir():
            return ["a run was killed while it wrote them"] if _partial(folder).is_dir() else []
        return damaged_files(folder)

    def forget_arrays(self, name: str, config_hash: str, seed: int) -> None:
        """Take the receipt away: the arrays wait to be made again, also for other runs."""
        folder = self.arrays_folder(name, config_hash, seed)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / _RECEIPT).unlink(missing_ok=True)

    def is_waiting(self, name: str, config_hash: str, seed: int) -> bool:
        """Return whether arrays of a part wait to be made again; not if they have been deleted."""
        there = self.arrays_folder(name, config_hash, seed).is_dir()
        return there and not self.has_arrays(name, config_hash, seed)

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
        partial = _partial(folder)
        with _no_space_explained(self.folder):
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir(parents=True)
            for split, named in arrays.items():
                with whole_file(partial / _file(split)) as file:
                    np.savez(file, **dict(named))  # type: ignore[arg-type]
            if network is not None:
                from safetensors.numpy import save

                write_file(partial / _NETWORK, save(dict(network)))
            write_file(partial / _RECEIPT, as_line(receipt))
            seal(partial)
            shutil.rmtree(folder, ignore_errors=True)
            partial.replace(folder)

    def load(self, name: str, config_hash: str, seed: int) -> Arrays:
        """Arrays of a part: split -> name -> array."""
        folder = self.arrays_folder(name, config_hash, seed)
        files = sorted(folder.glob("*.npz"))
        if not files:
            raise FileNotFoundError(f"no arrays in {str(folder)!r}: rows alone make tables")
        return {file.stem.replace("__", "/"): read_npz(file) for file in files}

    def network(self, name: str, config_hash: str, seed: int) -> dict[str, np.ndarray]:
        """Weights of a trained network by name."""
        path = self.arrays_folder(name, config_hash, seed) / _NETWORK
        if not path.exists():
            raise FileNotFoundError(
                f"no weights in {str(path)!r}: the network was trained before they were kept; "
                "delete its folder, and run the suite again"
            )
        return read_weights(path)

    def arrays_of(self, row: Mapping[str, Any], part: str = "method") -> Arrays:
        """Arrays of a row, see `load_arrays`."""
        method = row["method"]
        if part != "method" and part not in row["parts"]:
            raise LookupError(
                f"method {method!r} has no part {part!r}; it has {sorted(row['parts'])}"
            )
        of = row if part == "method" else row["parts"][part]
        try:
            return self.load(of.get("name", method), of["config_hash"], row["seed"])
        except FileNotFoundError as error:
            raise FileNotFoundError(
                f"{error}. Make rows and arrays in a folder of their own, all seeds of the suite: "
                f"dipedl-bench run {self.suite} --profile {self.profile} --methods {method} "
                "--out FOLDER, and name it with --out"
            ) from error


def _file(split: str) -> str:
    return f"{split.replace('/', '__')}.npz"


def _partial(folder: Path) -> Path:
    """Where the arrays of a folder are written, before they take their place."""
    return folder.with_name(f".{folder.name}.partial")


@contextmanager
def _no_space_explained(folder: Path) -> Iterator[None]:
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
