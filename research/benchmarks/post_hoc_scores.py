"""Seconds of post-hoc scores beside pytorch-ood's of the same names, and how far the two agree.

Both are fitted to the calibration rows of a published network of CIFAR-10, and score its test and
OOD rows; features and last layer are given. Seconds are those of pytorch-ood as it is, in float32;
differences are taken there, and again in double, where they are those of the formulas. Run it with
``OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python benchmarks/post_hoc_scores.py``, where pytorch-ood
is installed.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.metadata import version
from typing import Any

import harness
import numpy as np
import torch
from harness import paired_seconds, round_numbers
from pytorch_ood import detector as theirs
from sklearn.frozen import FrozenEstimator

from dipedl import baselines as ours
from dipedl_bench.results.predictions import CALIBRATION, Predictions
from dipedl_bench.running.cached import HeadClassifier
from dipedl_bench.running.scoring import find_predictions

SUITE, SEED, REPEATS, PEER = "cifar10-resnet", 20, 3, f"pytorch-ood {version('pytorch-ood')}"
#: Probabilities between it and one minus it enter GEN as they are there.
CLAMP = 1e-7


@contextmanager
def in_double() -> Iterator[None]:
    """Let pytorch-ood compute in float64, also where it casts to float32."""
    cast: Any = torch.Tensor.float
    torch.Tensor.float = torch.Tensor.double  # type: ignore[assignment,method-assign]
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.Tensor.float = cast  # type: ignore[method-assign]
        torch.set_default_dtype(torch.float32)


class Peer:
    """Their detectors on features z, labels y and new features q, in float32 as they take them.

    `scaled` brings their scores to ours, by a constant or a factor that leaves the ranking alone.
    """

    def __init__(self, Z: np.ndarray, y: np.ndarray, new: np.ndarray, head: Any) -> None:
        self.z, self.q = (torch.tensor(rows).float() for rows in (Z, new))
        self.y = torch.tensor(y)
        self.w, self.b = (torch.tensor(part).float() for part in head)
        self.head = torch.nn.Linear(self.w.shape[1], len(self.w))
        self.head.weight.data, self.head.bias.data = self.w.clone(), self.b.clone()
        self.same = torch.nn.Identity()

    def methods(self) -> Iterator[tuple[str, Any, Callable, Callable, Callable]]:
        """Yield the name of ours, it, and their fit, score and `scaled`."""
        n, k = len(self.z), len(self.w)
        z, q, y, w, b, head, same = self.z, self.q, self.y, self.w, self.b, self.head, self.same
        maps, flat = lambda rows: rows[:, :, None, None], lambda rows: head(rows.flatten(1))

        def of_logits(detector: Any) -> tuple[Callable, Callable]:
            return lambda: detector, lambda _: detector.predict_logits(head(q))

        def of_features(make: Callable[[], Any]) -> tuple[Callable, Callable]:
            return lambda: make().fit_features(z, y), lambda made: made.predict_features(q)

        def of_maps(detector: Any) -> tuple[Callable, Callable]:
            return lambda: detector, lambda _: detector.predict(q)

        def plain(u: np.ndarray) -> np.ndarray:
            return u

        yield "MaxSoftmax", ours.MaxSoftmax, *of_logits(theirs.MaxSoftmax(None)), lambda u: 1 + u
        yield "PredictiveEntropy", ours.PredictiveEntropy, *of_logits(theirs.Entropy(None)), plain
        yield "Energy", ours.Energy, *of_logits(theirs.EnergyBased(None)), plain
        yield "MaxLogit", ours.MaxLogit, *of_logits(theirs.MaxLogit(None)), plain
        yield "GEN", ours.GEN, *of_logits(theirs.GEN(None)), lambda u: k * u
        yield (
            "KLMatching",
            ours.KLMatching,
            lambda: theirs.KLMatching(None).fit_logits(head(z), y),
            lambda made: made.predict_logits(head(q)),
            plain,
        )
        # half a squared distance by the sum of squares, not their mean
        exact = {"features": "passthrough", "shrinkage": None}
        yield (
            "Mahalanobis",
            lambda rule: ours.Mahalanobis(rule, **exact),
            *of_features(lambda: theirs.Mahalanobis(None)),
            lambda u: 2 * n * u,
        )
        yield (
            "RelativeMahalanobis",
            lambda rule: ours.RelativeMahalanobis(rule, **exact),
            *of_features(lambda: theirs.RMD(None)),
            lambda u: n * u,
        )
        yield "KNNDistance", ours.KNNDistance, *of_features(lambda: theirs.KNN(None)), plain
        yield (
            "NNGuide",
            lambda rule: ours.NNGuide(rule, bank=1.0),
            *of_features(lambda: theirs.NNGuide(same, head)),
            plain,
        )
        yield (
            "FDBD",
            ours.FDBD,
            lambda: theirs.fDBD(same, head).fit_features(z),
            lambda made: made.predict_features(q),
            plain,
        )
        yield (
            "NCI",
            ours.NCI,
            lambda: theirs.NCI(same, head, 1e-4).fit_features(z),
            lambda made: made.predict_features(q),
            plain,
        )
        yield (
            "ViM",
            lambda rule: ours.ViM(rule, w.shape[1] // 2),
            *of_features(lambda: theirs.ViM(None, w.shape[1] // 2, w, b)),
            plain,
        )
        yield (
            "ReAct",
            ours.ReAct,
            lambda: theirs.ReAct(same, head).fit_feature_maps(z, y),
            lambda made: made.predict_feature_maps(q),
            plain,
        )
        yield "ASH", ours.ASH, *of_maps(theirs.ASH(maps, flat, "ash-s", 0.9)), plain
        yield "SCALE", ours.SCALE, *of_maps(theirs.SCALE(maps, flat, 0.85)), plain
        yield "DICE", ours.DICE, *of_features(lambda: theirs.DICE(None, w, b, 0.9)), plain


def differences(
    Z: np.ndarray, y: np.ndarray, new: np.ndarray, head: tuple[np.ndarray, np.ndarray]
) -> dict[str, float]:
    """Return, for each method, how far its scores of new features are from the peer's."""
    rule = FrozenEstimator(HeadClassifier(*head))
    found = {}
    with torch.no_grad():
        for name, make, fit, score, scaled in Peer(Z, y, new, head).methods():
            exact = scaled(score(fit()).double().numpy())
            found[name] = difference(make(rule).fit(Z, y).uncertainty(new), exact)
    return found


def seconds_of(
    make: Callable[[], Any], Z: np.ndarray, y: np.ndarray, new: np.ndarray, *peer: Callable
) -> dict[str, Any]:
    """Return the seconds of one method and of the peer."""
    fit, score, _ = peer
    mine, fitted = make().fit(Z, y), fit()
    steps: dict[str, dict[str, Callable[[], Any]]] = {
        "fit": {"ours": lambda: make().fit(Z, y), "theirs": fit},
        "score": {"ours": lambda: mine.uncertainty(new), "theirs": lambda: score(fitted)},
    }
    seconds = {
        step: paired_seconds(calls, REPEATS, time.process_time) for step, calls in steps.items()
    }
    total = {who: sum(of[who] for of in seconds.values()) for who in ("ours", "theirs")}
    return {"ratio": total["ours"] / total["theirs"], "seconds": seconds}


def measure() -> harness.Values:
    (file,) = find_predictions(SUITE, seeds=[SEED])
    predictions = Predictions.read(file)
    # after a ReLU none is negative; packed ones may be, by a rounding
    features = {s: np.maximum(of["features"], 0) for s, of in predictions.arrays.items()}
    Z, y = features[CALIBRATION], predictions.arrays[CALIBRATION]["y"]
    new = np.concatenate([rows for split, rows in features.items() if split != CALIBRATION])
    head = predictions.head
    rule = FrozenEstimator(HeadClassifier(*head))
    single = differences(Z, y, new, head)
    with in_double():
        double = differences(Z, y, new, head)
    with torch.no_grad():
        values = {
            name: {"difference": single[name], "difference in double": double[name]}
            | seconds_of(partial(make, rule), Z, y, new, *peer)
            for name, make, *peer in Peer(Z, y, new, head).methods()
        }
    # pytorch-ood clamps probabilities: rows with none that small
    inside = rule.estimator.predict_proba(new).min(axis=1) > CLAMP
    logits = torch.tensor(rule.estimator.logits(new[inside]))
    exact = logits.shape[1] * theirs.GEN.score(logits)
    gen = ours.GEN(rule).fit(Z, y).uncertainty(new[inside])
    totals = {
        who: sum(step[who] for of in values.values() for step in of["seconds"].values())
        for who in ("ours", "theirs")
    }
    found = {
        "rows": {"fitted": len(Z), "scored": len(new), "features": Z.shape[1]},
        "methods": values,
        "ratio": totals["ours"] / totals["theirs"],
        "GEN, not clamped": {
            "share of rows": float(inside.mean()),
            "difference": difference(gen, exact.numpy()),
        },
    }
    return round_numbers(found, 3)


def difference(u: np.ndarray, expected: np.ndarray) -> float:
    """Return the largest difference of scores, as a share of the largest score."""
    return float(np.abs(u - expected).max() / np.abs(expected).max())


if __name__ == "__main__":
    harness.main(__file__, measure)
