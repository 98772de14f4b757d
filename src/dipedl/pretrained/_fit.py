"""Density and evidence of a network from loaders, in one process or in several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import torch
from torch import distributed

from ..calibration._seen_rows import share_seen, smallest
from ..calibration.crossfit import ENOUGH, IN_SAMPLE, row_hash
from ..calibration.held_out import Origin
from ..held_out import FEWEST, MOST, less_sure_between
from ..maths.array_namespace import to_numpy
from ..maths.checks import on_simplex
from ..nn.batches import Unpack, check_rereadable
from ._decisions.kept_rows import KeptRows, spread_evenly
from ._evidence_head import EvidenceHead
from ._feature_source import FeatureSource
from ._fusion import Score
from ._stream import HeldOutRows, passes
from .class_gaussians import ClassGaussians

_WORLD = "world"
_T = TypeVar("_T")


@dataclass(frozen=True)
class Data:
    """What `DIPModule.fit_density` was given, and where the network is."""

    loader: Any
    calibration: Any
    held_out: Any
    unpack: Unpack | None
    group: Any
    device: torch.device

    def check(self) -> None:
        """Raise unless the rows can be held out as asked."""
        self.split()
        if self.in_sample:
            check_rereadable(self.loader, "loader")

    @property
    def in_sample(self) -> bool:
        """Whether the training rows also calibrate."""
        return self.calibration is None and isinstance(self.held_out, str)

    def origin(self, keys: np.ndarray, hashes: np.ndarray | None) -> Origin:
        """Where held-out rows come from, by hashes of their features and of the density's."""
        if self.calibration is None:
            return "in-sample" if self.in_sample else "left out"
        return "given twice" if share_seen(keys, hashes) else "given"

    def split(self) -> HeldOutRows | None:
        """Which rows of the loader are held out; None if no row is."""
        rows = rows_to_hold_out(self.held_out)
        return rows if self.calibration is None else None

    def rows(self, source: FeatureSource, name: str) -> Any:
        """Checked rows of the loader or of the calibration data, batch by batch."""
        most = MOST if name == "loader" and self.calibration is None and not self.in_sample else 0
        return passes(source, getattr(self, name), self.unpack, self.device, name, most)


def rows_to_hold_out(held: Any) -> HeldOutRows | None:
    """The rows that a setting `held_out` asks for; None for those of the density."""
    if isinstance(held, str) and held == IN_SAMPLE:
        return None
    if isinstance(held, str | bool) or not isinstance(held, Real):
        raise TypeError(
            f"held_out must be a share of the rows, their number or {IN_SAMPLE!r}, got {held!r}"
        )
    integer, number = isinstance(held, Integral), float(held)
    if not (number >= 1 if integer else 0 < number < 1):
        raise ValueError(
            "held_out must be a share strictly between 0 and 1 or a number of rows >= 1, got "
            f"{held!r}"
        )
    return HeldOutRows(0.5, int(number)) if integer else HeldOutRows(number, ENOUGH)


def fit_parts(
    source: FeatureSource,
    density: ClassGaussians,
    score: Score,
    head: EvidenceHead,
    data: Data,
    classes: Sequence[Any] | None,
) -> KeptRows:
    """Fit a blank density and score, then a head; it stays as it was if anything fails.

    Returns the held-out rows that the last two have learned from.
    """
    data.check()
    if head.spread is not None and data.calibration is None:
        raise ValueError(
            "spread judges how wrong the network is, and needs labelled rows that it was not "
            "trained on: pass them as fit_density(loader, calibration=held_out)"
        )
    group = resolved_group(data.group)
    split = data.split()
    learn = partial(_learn_density, source, density, split, data, classes)
    hashes, memorised = _together(learn, group)
    if group is not None:
        hashes = smallest(np.concatenate(_from_all(hashes, group)))
        memorised = all(_from_all(memorised, group))
        density.synchronise(group)
    density.finish()
    return calibrate_parts(source, density, score, head, data, split, hashes, memorised)


def calibrate_parts(
    source: FeatureSource,
    density: ClassGaussians,
    score: Score,
    head: EvidenceHead,
    data: Data,
    split: HeldOutRows | None = None,
    hashes: np.ndarray | None = None,
    memorised: bool = False,
) -> KeptRows:
    """Fit a blank score and a head on the held-out rows of a density; as `fit_parts`.

    `hashes` are the smallest of the features that the density has learned from, if known;
    `memorised` says whether the network seems to know the loader's rows by heart.
    """
    group = resolved_group(data.group)
    whole = head.needs_proba or score.needs_logits or not data.in_sample
    rehearses = head.spread is not None
    batches = _together(lambda: _predictions(source, density, split, data, whole, rehearses), group)
    if group is not None:
        batches = list(chain(*_from_all(batches, group)))
    columns = [np.concatenate(parts) for parts in zip(*batches, strict=True)]
    # A score is one number, a row with logits k of them.
    rows = spread_evenly(len(columns[0]), ENOUGH if whole else len(columns[0]))
    log_density, keys, *rest = (column[rows] for column in columns)
    logits, labels, Z = (*rest, None, None, None)[:3]
    scores = score.learn(log_density, logits)
    kept = KeptRows()
    kept.keep(
        scores,
        log_density if score.needs_logits else None,
        logits,
        labels,
        data.origin(keys, hashes),
        memorised,
    )
    head.learn(kept.held_out(), Z, n=float(density.n_), k=density.n_classes_)
    return kept


def resolved_group(group: Any) -> Any:
    """The process group that was asked for; None for this process alone."""
    if group is None:
        return None
    if not (distributed.is_available() and distributed.is_initialized()):
        raise ValueError(
            f"group={group!r} was given, but torch.distributed is not initialised; call "
            "torch.distributed.init_process_group first, or leave group=None"
        )
    if isinstance(group, str) and group == _WORLD:
        return distributed.group.WORLD
    if not isinstance(group, distributed.ProcessGroup):
        raise TypeError(f"group must be None, 'world' or a ProcessGroup, got {group!r}")
    return group


def _learn_density(
    source: FeatureSource,
    density: ClassGaussians,
    split: HeldOutRows | None,
    data: Data,
    classes: Sequence[Any] | None,
) -> tuple[np.ndarray, bool]:
    """Take the rows of the loader into the density.

    Returns the smallest hashes of their features, and whether the network seems to know the rows
    by heart: it makes no error, or is less sure of the label half-way between two rows of a class.
    """
    hashes = np.empty(0, np.uint64)
    count, errors, looks = 0, 0, list[tuple[np.ndarray, ...]]()
    for rows in data.rows(source, "loader"):
        k = rows.logits.shape[1]
        if classes is not None and len(classes) != k:
            raise ValueError(
                f"classes must name the {k} classes of the network's logits, got {len(classes)} "
                "names"
            )
        for part in [rows] if split is None else split.split(rows):
            density.update(part.features, part.labels, k)
        if data.calibration is not None:
            hashes = smallest(np.concatenate([hashes, row_hash(to_numpy(rows.features))]))
        count, errors = (
            count + len(rows),
            errors + int((rows.logits.argmax(1) != rows.labels).sum()),
        )
        if rows.between is not None:
            at = rows.logits[: len(rows.between)].double(), rows.between.double()
            P, between = (to_numpy(logits.softmax(1)) for logits in at)
            looks.append((P, between, rows.labels[: len(P)].cpu().numpy()))
    if data.calibration is not None or data.in_sample or count < FEWEST:
        return hashes, False
    columns = [np.concatenate(parts) for parts in zip(*looks, strict=True)]
    uneven = bool(columns) and len(columns[0]) >= FEWEST and less_sure_between(*columns)
    return hashes, uneven or not errors


def _predictions(
    source: FeatureSource,
    density: ClassGaussians,
    split: HeldOutRows | None,
    data: Data,
    whole: bool,
    rehearses: bool,
) -> list[tuple[np.ndarray, ...]]:
    """Log-densities (m,) of held-out rows by batch, and hashes (m,) of their features.

    If `whole` also logits (m, k) and labels (m,), and the features (m, p) if it `rehearses` too.
    """
    if split is None:
        batches = data.rows(source, "loader" if data.in_sample else "calibration")
    elif not (batches := split.rows()):
        raise ValueError(
            f"held_out={data.held_out!r} of {density.n_:g} rows holds out none; pass held-out "
            "data as calibration=, or a larger share"
        )
    found, softmaxed = [], True
    for rows in batches:
        softmaxed = softmaxed and bool(on_simplex(rows.logits).all())
        with torch.no_grad():
            scores = to_numpy(density(rows.features))
        Z = to_numpy(rows.features)
        rest = (to_numpy(rows.logits), rows.labels.cpu().numpy()) if whole else ()
        found.append((scores, row_hash(Z), *rest, *([Z] if rehearses else [])))
    if softmaxed:
        raise ValueError(
            "the network must give logits, and gives probabilities: on all held-out rows its "
            "outputs lie in [0, 1] and sum to 1. Leave out the softmax at its end, or put a layer "
            "behind it that takes the log: log-probabilities are logits"
        )
    return found


def _together(step: Callable[[], _T], group: Any) -> _T:
    """Run a step in every process; where one fails all raise, so that none waits for it."""
    if group is None:
        return step()
    failure: Exception | None = None
    try:
        result = step()
    except Exception as error:
        failure = error
    said = None if failure is None else f"{type(failure).__name__}: {failure}"
    failed = [f"rank {i}: {text}" for i, text in enumerate(_from_all(said, group)) if text]
    if failure is not None:
        raise failure
    if failed:
        raise RuntimeError(f"fit_density failed in another process: {'; '.join(failed)}")
    return result


def _from_all(value: Any, group: Any) -> list[Any]:
    found: list[Any] = [None] * distributed.get_world_size(group)
    distributed.all_gather_object(found, value, group=group)
    return found
