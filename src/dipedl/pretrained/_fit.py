"""Density and evidence of a network from loaders, in one process or in several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import torch
from scipy import special
from torch import Tensor, distributed

from ..calibration.crossfit import ENOUGH, IN_SAMPLE
from ..calibration.held_out import HeldOut
from ..nn._loader import Unpack, check_rereadable
from ._evidence_head import EvidenceHead
from ._feature_source import FeatureSource
from ._fusion import Score
from ._stream import HeldOutRows, Rows, passes
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

    def split(self) -> HeldOutRows | None:
        """Which rows of the loader are held out; None if no row is."""
        held = self.held_out
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
        if self.calibration is not None:
            return None
        return HeldOutRows(0.5, int(number)) if integer else HeldOutRows(number, ENOUGH)

    def rows(self, source: FeatureSource, name: str) -> Any:
        """Checked rows of the loader or of the calibration data, batch by batch."""
        return passes(source, getattr(self, name), self.unpack, self.device, name)


@dataclass
class _Answers:
    """Scores (m,), logits (m, k) and labels (m,) of held-out rows, on the host, by batch."""

    with_logits: bool
    scores: list[np.ndarray] = field(default_factory=list)
    logits: list[np.ndarray] = field(default_factory=list)
    labels: list[np.ndarray] = field(default_factory=list)

    def add(self, density: ClassGaussians, rows: Rows) -> None:
        with torch.no_grad():
            self.scores.append(_host(density(rows.features)))
        if self.with_logits:
            self.logits.append(_host(rows.logits))
            self.labels.append(rows.labels.cpu().numpy())

    def gathered(self, group: Any) -> _Answers:
        """Those of all processes, in the order of their ranks."""
        if group is None:
            return self
        joint = _Answers(self.with_logits)
        for scores, logits, labels in _from_all((self.scores, self.logits, self.labels), group):
            joint.scores += scores
            joint.logits += logits
            joint.labels += labels
        return joint


def fit_parts(
    source: FeatureSource,
    density: ClassGaussians,
    score: Score,
    head: EvidenceHead,
    data: Data,
    classes: Sequence[Any] | None,
) -> None:
    """Fit a blank density and score, then a head; it stays as it was if anything fails."""
    data.check()
    group = resolved_group(data.group)
    split = data.split()
    k = _together(lambda: _learn_density(source, density, split, data, classes), group)
    if group is not None:
        density.synchronise(group)
    density.finish()
    answers = _Answers(head.needs_proba or score.needs_logits)
    _together(lambda: _ask(source, density, split, data, answers), group)
    answers = answers.gathered(group)
    log_density = np.concatenate(answers.scores)
    logits = proba = labels = None
    if answers.with_logits:
        logits = np.concatenate(answers.logits)
        proba, labels = special.softmax(logits, axis=1), np.concatenate(answers.labels)
    scores = score.learn(log_density, logits)
    where = "in-sample rows" if data.in_sample else "held-out rows"
    held = HeldOut(scores, f"{len(scores)} {where}", proba=proba, labels=labels)
    head.learn(held, n=float(density.n_), k=k)


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
) -> int:
    """Take the rows of the loader into the density; returns the number of classes."""
    k = 0
    for rows in data.rows(source, "loader"):
        k = rows.logits.shape[1]
        if classes is not None and len(classes) != k:
            raise ValueError(
                f"classes must name the {k} classes of the network's logits, got {len(classes)} "
                "names"
            )
        for part in [rows] if split is None else split.split(rows):
            density.update(part.features, part.labels, k)
    return k


def _ask(
    source: FeatureSource,
    density: ClassGaussians,
    split: HeldOutRows | None,
    data: Data,
    answers: _Answers,
) -> None:
    if split is not None:
        for rows in split.rows():
            answers.add(density, rows)
        if not answers.scores:
            raise ValueError(
                f"held_out={data.held_out!r} of {density.n_:g} rows holds out none; pass held-out "
                "data as calibration=, or a larger share"
            )
        return
    name = "loader" if data.in_sample else "calibration"
    for rows in data.rows(source, name):
        answers.add(density, rows)


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


def _host(tensor: Tensor) -> np.ndarray:
    return tensor.detach().double().cpu().numpy()
