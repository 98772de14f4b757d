"""Outputs of a network, or of any method, on calibration, test and OOD rows, in one file.

Published predictions and arrays of one's own have the same form: a ``.npz`` file with the keys of
`Predictions.from_arrays`. A score that is made from features and logits needs nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax
from scipy.stats import rankdata

from dipedl.writing import whole_file

from ..names import refuse_unknown
from .files import read_file
from .scores import OOD_PREFIX, SHIFTED_PREFIX
from .store import Arrays

__all__ = [
    "CALIBRATION",
    "Predictions",
    "predictions_file",
    "ranks_file",
    "read_ranks",
    "write_ranks",
]

#: Split of the rows that a method is fitted on.
CALIBRATION = "validation"
#: Name in a file -> name in the arrays of a split.
_NAMES = {"logits": "logits", "proba": "probabilities", "features": "features", "labels": "y"}
_NAMES |= {"uncertainty": "uncertainty", "codes": "codes"}
_CALIBRATION_KEY = "calibration_"
#: What keys of sets begin with -> what their splits begin with.
_SETS = {"ood_": OOD_PREFIX, "shifted_": SHIFTED_PREFIX}
_SINGLE = ("head_weight", "head_bias", "seed")
#: What `Predictions.write` adds to them.
_PACKED = ("about", "features_mean", "features_basis")
#: OOD sets may not have the names of known rows.
_KNOWN_SETS = ("train", "calibration", "validation", "test")
#: How far a row of probabilities may sum from one, and how far outputs may be from those of the
#: last layer, which half precision moves, relative to their size and standard deviation.
_SUM_TOLERANCE, _HEAD_TOLERANCE = 1e-3, 1e-2
#: Types in a file: logits as the network gave them, so that scores of them are those of the rows.
_TYPES = {"logits": np.float32, "probabilities": np.float32, "uncertainty": np.float64}
#: Step of packed features, in standard deviations; the smallest of those, as a share of the
#: largest; the largest number of steps.
_STEP, _LEAST_SCALE, _LARGEST_CODE = 1 / 16, 1e-4, 2**15 - 1
#: Weight (k, p) and bias (k,) of a last layer.
Head = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class Predictions:
    """Outputs by split: "test", "validation" to fit on, "ood/<name>" for each OOD set.

    Labelled test rows from elsewhere, such as corrupted ones, are "shifted/<name>".

    Each split has "probabilities" (n, k), and "logits" (n, k), "features" (n, p) and "uncertainty"
    (n,) if all have them; labelled ones "y" (n,), class numbers. `head` are weight (k, p) and bias
    (k,) of the last layer. `about` says of published predictions what they are of: "suite",
    "profile", "classifier" (name and config) and "receipt" (what the training cost).
    `sha256` is the hash of the arrays as they were passed.
    """

    arrays: Arrays
    seed: int = 0
    head: Head | None = None
    about: Mapping[str, Any] = field(default_factory=dict)
    sha256: str = ""

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, Any], where: str = "arrays") -> Predictions:
        """Return the predictions in arrays by name, checked.

        Parameters
        ----------
        arrays : mapping of str to array-like
            "labels" (n,), class numbers 0..k-1, and "logits" (n, k) or "proba" (n, k) of the test
            rows; for each OOD set "ood_NAME_logits" or "ood_NAME_proba"; for each labelled set from
            elsewhere "shifted_NAME_logits" (or "_proba") and "shifted_NAME_labels". Optional, for
            all sets or for none: "features" (n, p), "ood_NAME_features"; "uncertainty" (n,), higher
            is less sure, "ood_NAME_uncertainty". To fit methods on: "calibration_logits" (or
            "_proba"), "calibration_labels", "calibration_features". "head_weight" (k, p) and
            "head_bias" (k,) of the last layer; "seed", an integer.
        where : str
            Names the arrays in errors.

        Raises
        ------
        ValueError
            If a name is unknown, an array is missing, shapes disagree, numbers are not finite,
            labels are out of range, probabilities do not sum to one, or the outputs are not those
            of the last layer; the error names the array.
        """
        named = {key: _as_array(key, value, where) for key, value in arrays.items()}
        splits: Arrays = {}
        for key in named:
            if key not in (*_SINGLE, *_PACKED):
                split, name = _place_of(key, where)
                splits.setdefault(split, {})[name] = named[key]
        if "test" not in splits or "y" not in splits["test"]:
            raise ValueError(f"{where}: labels is missing: the class numbers of the test rows")
        codes = {split: of.pop("codes") for split, of in splits.items() if "codes" in of}
        if codes and not {*_PACKED, *(_key_of(split, "logits") for split in codes)} <= named.keys():
            raise ValueError(
                f"{where}: {_key_of(next(iter(codes)), 'codes')} is of files that "
                "Predictions.write makes; pass features instead"
            )
        for split, of in splits.items():
            _check_split(of, split, where)
        given = {split: dict(of) for split, of in splits.items()}
        head = _read_head(named, splits["test"], where)
        for split, packed in codes.items():  # of a published file
            logits = splits[split]["logits"]
            splits[split]["features"] = unpack_features(named, packed, logits, head)
        _check_together(splits, where)
        if head is not None:
            _check_head(given, head, where)
        order = ("test", CALIBRATION, *sorted(splits))
        seed = named.get("seed", np.array(0))
        if seed.shape != () or seed.dtype.kind not in "iu" or seed < 0:
            raise ValueError(f"{where}: seed must be an integer >= 0, got {seed!r}")
        about = json.loads(str(named["about"])) if "about" in named else {}
        checked = {split: splits[split] for split in dict.fromkeys(order) if split in splits}
        return cls(checked, int(seed), head, about, _digest(named))

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Predictions:
        """Return the predictions in a ``.npz`` file; errors as of `from_arrays`."""
        if not Path(path).is_file():
            raise FileNotFoundError(f"no file {str(path)!r}; name a .npz file of predictions")
        if Path(path).suffix != ".npz":
            raise ValueError(f"{str(path)!r} must be a .npz file, as numpy.savez writes it")
        remedy = "write it again, by numpy.savez, with arrays of numbers only"
        return cls.from_arrays(read_file(Path(path), remedy), str(path))

    def write(self, path: Path) -> None:
        """Write a compressed file: features packed, see `pack_features`, logits in float32."""
        arrays: dict[str, Any] = {"seed": self.seed, "about": json.dumps(dict(self.about))}
        if self.has("features"):
            arrays |= pack_features({split: of["features"] for split, of in self.arrays.items()})
        for split, named in self.arrays.items():
            for name, kind in _TYPES.items():
                # probabilities are those of the logits
                if name in named and not (name == "probabilities" and "logits" in named):
                    arrays[_key_of(split, name)] = named[name].astype(kind)
            if "y" in named:
                small = np.min_scalar_type(int(named["y"].max()))
                arrays[_key_of(split, "y")] = named["y"].astype(small)
        if self.head is not None:
            arrays |= {"head_weight": self.head[0], "head_bias": self.head[1]}
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            np.savez_compressed(file, **arrays)

    @property
    def n_classes(self) -> int:
        """Number of classes k."""
        return _width(self.arrays["test"])

    @property
    def ood(self) -> tuple[str, ...]:
        """Names of the OOD sets."""
        names = (s.removeprefix(OOD_PREFIX) for s in self.arrays if s.startswith(OOD_PREFIX))
        return tuple(names)

    @property
    def sizes(self) -> dict[str, int]:
        """Rows of each split."""
        return {split: len(named["probabilities"]) for split, named in self.arrays.items()}

    def has(self, name: str) -> bool:
        """Return whether all splits have an array of this name."""
        return all(name in named for named in self.arrays.values())


def predictions_file(folder: Path, name: str, digest: str, seed: int) -> Path:
    """Return where the predictions of a network are published, in the folder of a profile."""
    return folder / "predictions" / f"{name}-{digest}-{seed}.npz"


# ------------------------------------------------------------------- the ranking of one method


def ranks_file(folder: Path, row: Mapping[str, Any]) -> Path:
    """Return where the ranks of a row's method are published, in the folder of a profile."""
    return folder / "ranks" / f"{row['method']}-{row['config_hash']}-{row['seed']}.npz"


def write_ranks(path: Path, arrays: Arrays) -> None:
    """Write labels, and uncertainties of test and OOD rows as ranks among them all.

    AUROC, AUPR, FPR95 and tests of their differences depend on nothing else. Equal rows have equal
    ranks.
    """
    splits = ["test", *sorted(split for split in arrays if split.startswith(OOD_PREFIX))]
    ranks = rankdata(np.concatenate([arrays[s]["uncertainty"] for s in splits]), "dense") - 1
    ends = np.cumsum([len(arrays[split]["uncertainty"]) for split in splits])[:-1]
    parts = np.split(ranks.astype(np.min_scalar_type(int(ranks.max()))), ends)
    named: dict[str, Any] = dict(
        zip((_key_of(s, "uncertainty") for s in splits), parts, strict=True)
    )
    y = arrays["test"]["y"]
    named[_key_of("test", "y")] = y.astype(np.min_scalar_type(int(y.max())))
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        np.savez_compressed(file, **named)


def read_ranks(path: Path) -> Arrays:
    """Return what `write_ranks` wrote: labels, and ranks in the place of uncertainties."""
    arrays: Arrays = {}
    for key, value in read_file(path).items():
        split, name = _place_of(key, str(path))
        arrays.setdefault(split, {})[name] = value
    return arrays


# ---------------------------------------------------------------------- features in few bytes


def pack_features(features: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return features by split in about 6 bits a number, see `unpack_features`.

    Each principal component of the calibration rows, or of the test rows without those, is rounded
    to a sixteenth of its standard deviation: small components, which distances of Mahalanobis weigh
    up, are kept as well as large ones. Low and high bytes lie apart, component by component, for
    they compress better.
    """
    reference = features.get(CALIBRATION, features["test"]).astype(np.float64)
    mean = reference.mean(axis=0)
    variances, axes = np.linalg.eigh(np.cov(reference, rowvar=False))
    scales = np.sqrt(np.maximum(variances, 0))
    basis = axes * np.maximum(scales, _LEAST_SCALE * scales.max()) * _STEP
    packed = {"features_mean": mean, "features_basis": basis.astype(np.float32)}
    for split, rows in features.items():
        codes = np.rint(
            (rows - mean) @ np.linalg.inv(packed["features_basis"]).T.astype(np.float64)
        )
        if np.abs(codes).max(initial=0) > _LARGEST_CODE:
            raise ValueError(f"features of {split} lie too far from the others to be packed")
        whole = codes.astype(np.int32)
        # signs in the last bit, so that small numbers of both signs have an empty high byte
        bits = ((whole << 1) ^ (whole >> 31)).astype(np.uint16).T
        packed[_key_of(split, "codes")] = np.stack([bits & 255, bits >> 8]).astype(np.uint8)
    return packed


def unpack_features(
    packed: Mapping[str, np.ndarray], codes: np.ndarray, logits: np.ndarray, head: Head | None
) -> np.ndarray:
    """Return features (n, p) of codes; with a head those nearest to them with these logits."""
    bits = codes[0].astype(np.int32) | codes[1].astype(np.int32) << 8
    whole = (bits >> 1) ^ -(bits & 1)
    features = whole.T @ packed["features_basis"].astype(np.float64).T + packed["features_mean"]
    if head is None:
        return np.asarray(features)
    weight, bias = head
    gap = logits - features @ weight.T - bias
    return np.asarray(features + gap @ np.linalg.pinv(weight).T)


# -------------------------------------------------------------------------------------- checks


def _as_array(key: Any, value: Any, where: str) -> np.ndarray:
    if not isinstance(key, str):
        raise TypeError(f"{where}: names of arrays must be text, got {key!r}")
    try:
        return np.asarray(value)
    except ValueError as error:
        raise ValueError(f"{where}: {key} must be an array of numbers: {error}") from error


def _digest(named: Mapping[str, np.ndarray]) -> str:
    """Return twelve hex digits of the SHA-256 of arrays, with their names, types and shapes."""
    digest = hashlib.sha256()
    for key, array in sorted(named.items()):
        digest.update(f"{key} {array.dtype.str} {array.shape}\n".encode() + array.tobytes())
    return digest.hexdigest()[:12]


def _read_head(named: Mapping[str, Any], test: Mapping[str, Any], where: str) -> Head | None:
    if "head_weight" not in named:
        if "head_bias" in named:
            raise ValueError(f"{where}: head_weight is missing, for head_bias is there; pass both")
        return None
    weight = named["head_weight"].astype(np.float64)
    bias = named.get("head_bias", np.zeros(len(weight))).astype(np.float64)
    features = named.get("features_basis", test.get("features", np.empty((0, 0))))
    k, p = _width(test), features.shape[1]
    if weight.shape != (k, p) or bias.shape != (k,):
        raise ValueError(
            f"{where}: head_weight and head_bias must have the shapes {(k, p)} and {(k,)}, by the "
            f"columns of logits and features; got {weight.shape} and {bias.shape}"
        )
    return weight, bias


def _check_head(splits: Arrays, head: Head, where: str) -> None:
    """Check that the last layer gives the outputs that were passed; packed features always do."""
    weight, bias = head
    for split, named in splits.items():
        if "features" not in named:
            continue
        name = "logits" if "logits" in named else "probabilities"
        given, outputs = named[name], named["features"] @ weight.T + bias
        gap = np.abs((outputs if name == "logits" else softmax(outputs, axis=1)) - given)
        if (gap > _HEAD_TOLERANCE * (np.abs(given) + given.std())).any():
            raise ValueError(
                f"{where}: head_weight and head_bias must be the layer that makes "
                f"{_key_of(split, name)} of {_key_of(split, 'features')} by features @ "
                f"head_weight.T + head_bias, but differ by up to {gap.max():.3g}; pass both of the "
                "layer that takes these features, or neither"
            )


def _place_of(key: str, where: str) -> tuple[str, str]:
    """Split and name of an array by its key in a file."""
    split, rest = "test", key
    if key.startswith(_CALIBRATION_KEY):
        split, rest = CALIBRATION, key.removeprefix(_CALIBRATION_KEY)
    elif prefix := next((prefix for prefix in _SETS if key.startswith(prefix)), ""):
        name, _, rest = key.removeprefix(prefix).rpartition("_")
        split = f"{_SETS[prefix]}{name}"
        if not name:
            raise ValueError(f"{where}: {key!r} must name its set, such as {prefix}svhn_logits")
        if name in _KNOWN_SETS:
            raise ValueError(
                f"{where}: {key!r}: a shifted or an OOD set may not have the name of known rows"
            )
    unlabelled = split.startswith(OOD_PREFIX)
    hidden = ("codes", "labels") if unlabelled else ("codes",)
    allowed = [name for name in _NAMES if name not in hidden]
    known = [f"{key.removesuffix(rest)}{name}" for name in allowed]
    if rest != "codes":
        refuse_unknown("array", [key], [*known, *(_SINGLE if split == "test" else ())], where)
    return split, _NAMES[rest]


def _key_of(split: str, name: str) -> str:
    """Key of an array in a file, for errors."""
    key = next(key for key, own in _NAMES.items() if own == name)
    if split == "test":
        return key
    if split == CALIBRATION:
        return f"{_CALIBRATION_KEY}{key}"
    start, before = next((k, of) for k, of in _SETS.items() if split.startswith(of))
    return f"{start}{split.removeprefix(before)}_{key}"


def _check_split(named: dict[str, np.ndarray], split: str, where: str) -> None:
    """Check the arrays of a split by themselves, and add the probabilities of logits."""
    logits, proba = (_key_of(split, name) for name in ("logits", "probabilities"))
    if ("logits" in named) == ("probabilities" in named):
        both = "both are there" if "logits" in named else "neither is"
        raise ValueError(f"{where}: {logits} or {proba} must be there, one of them; {both}")
    outputs = "logits" if "logits" in named else "probabilities"
    for name in sorted(named, key=lambda name: name != outputs):
        array, key = named[name], _key_of(split, name)
        rank = 1 if name in ("y", "uncertainty") else 2
        if array.ndim != rank or array.dtype.kind not in "iufb" or not array.size:
            form = "class numbers, for each row the column of its class in the outputs, with 1 axis"
            form = form if name == "y" else f"numbers with {rank} {'axis' if rank == 1 else 'axes'}"
            raise ValueError(
                f"{where}: {key} must be {form} and at least one row, got {array.dtype} of shape "
                f"{array.shape}"
            )
        if len(array) != (n := len(named[outputs])):
            raise ValueError(f"{where}: {key} has {len(array)} rows, the outputs of the set {n}")
        if name != "y":
            named[name] = array = array.astype(np.float64)
            if not np.isfinite(array).all():
                at = tuple(np.argwhere(~np.isfinite(array))[0])
                places = (f"{axis} {i}" for axis, i in zip(("row", "column"), at, strict=False))
                raise ValueError(
                    f"{where}: {key} must be finite, got {array[at]} in {', '.join(places)}"
                )
    if "y" in named:
        _check_labels(named, split, where)
    if "logits" in named:
        named["probabilities"] = softmax(named["logits"], axis=1)
        return
    sums = named["probabilities"].sum(axis=1)
    wrong = (np.abs(sums - 1) > _SUM_TOLERANCE) | (named["probabilities"] < 0).any(axis=1)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{where}: {proba} must be probabilities that sum to one, got "
            f"{named['probabilities'][row]} in row {row}, with sum {sums[row]:g}; pass raw outputs "
            f"as {logits}"
        )
    named["probabilities"] = named["probabilities"] / sums[:, None]


def _check_labels(named: dict[str, np.ndarray], split: str, where: str) -> None:
    key, y, k = _key_of(split, "y"), named["y"], _width(named)
    wrong = (y != np.floor(y)) | (y < 0) | (y >= k)
    if wrong.any():
        row = int(wrong.argmax())
        raise ValueError(
            f"{where}: {key} must be class numbers 0..{k - 1}, for there are {k} columns of "
            f"outputs; got {y[row]} in row {row}"
        )
    named["y"] = y.astype(np.int64)


def _check_together(splits: Arrays, where: str) -> None:
    """Check that all splits have arrays of the same names and widths."""
    test = splits["test"]
    if CALIBRATION in splits and "y" not in splits[CALIBRATION]:
        raise ValueError(f"{where}: {_CALIBRATION_KEY}labels is missing, to fit methods on")
    for split, named in splits.items():
        if split.startswith(SHIFTED_PREFIX) and "y" not in named:
            raise ValueError(f"{where}: {_key_of(split, 'y')} is missing: such sets are labelled")
        for name in ("logits", "probabilities", "features", "uncertainty"):
            if name == "uncertainty" and split == CALIBRATION:
                continue
            if (name in named) != (name in test):
                missing, there = (split, "test") if name in test else ("test", split)
                raise ValueError(
                    f"{where}: {_key_of(missing, name)} is missing, for {_key_of(there, name)} is "
                    "there: it must be there for all sets or for none"
                )
            width = named[name].shape[1:] if name in named else ()
            if name in named and width != test[name].shape[1:]:
                raise ValueError(
                    f"{where}: {_key_of(split, name)} has {width[0]} columns, "
                    f"{_key_of('test', name)} {test[name].shape[1]}"
                )


def _width(named: Mapping[str, np.ndarray]) -> int:
    return int(named["logits" if "logits" in named else "probabilities"].shape[1])


def check_suite(predictions: Predictions, ood: Iterable[str], dataset: str, where: str) -> None:
    """Raise ValueError unless the OOD sets are among those of a suite's data set."""
    for name in predictions.ood:
        if name == dataset:
            raise ValueError(
                f"{where}: ood_{name}: {name!r} is the known data of the suite, no OOD set"
            )
    refuse_unknown("OOD set", predictions.ood, ood, where)
