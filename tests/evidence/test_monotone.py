"""Normalisers that turn the order round are found, ours are let pass."""

from inspect import signature

import numpy as np
import pytest

from dipedl import evidence
from dipedl.evidence import check_increasing

SCORES = np.random.default_rng(0).normal(size=2500)


class Function:
    def __init__(self, transform):
        self.transform = transform


@pytest.mark.parametrize("scores", [SCORES, SCORES[:2], SCORES[:1], np.r_[SCORES, -np.inf]])
@pytest.mark.parametrize("name", [n for n in evidence.__all__ if n[0].isupper()])
def test_our_own_are_increasing(name, scores):
    normalizer = getattr(evidence, name)()
    given = {"n": 50}
    m = len(SCORES)
    given |= {"proba": np.tile([0.7, 0.3], (m, 1)), "y": (np.arange(m) % 10 > 6).astype(int)}
    given["prior"] = np.ones(2)
    accepted = signature(normalizer.fit).parameters
    check_increasing(
        normalizer.fit(SCORES, **{k: v for k, v in given.items() if k in accepted}), scores
    )


@pytest.mark.parametrize(
    ("transform", "message"),
    [
        (np.negative, "must be increasing, but z falls from"),
        (np.abs, "must be increasing, but z falls"),
        (np.sin, "must be increasing, but z falls"),
        (lambda s: np.where(s > 50 * np.ptp(SCORES), 0.0, s), "z falls"),
        (lambda s: np.where((s > 0.1) & (s < 0.2), -1.0, s), "z falls"),
        (np.zeros_like, "z = 0 for every score"),
        (lambda s: np.full_like(s, -np.inf), "z = -inf for every score"),
        (lambda s: np.exp(3 * s), "z = inf for the score"),
        (lambda s: np.where(s < -3, np.nan, s), "z = nan for the score"),
        (lambda s: s[:-1], "one z per score"),
    ],
)
def test_others_are_found(transform, message):
    with np.errstate(over="ignore"), pytest.raises(ValueError, match=message):
        check_increasing(Function(transform), SCORES)


@pytest.mark.parametrize(
    "transform",
    [
        np.tanh,
        lambda s: np.clip(s, -1, 1),
        lambda s: np.where(s < -1, -np.inf, s),
        lambda s: s + 1e-12 * np.sin(1e9 * s),
    ],
)
def test_saturation_and_rounding_are_let_pass(transform):
    check_increasing(Function(transform), SCORES)
