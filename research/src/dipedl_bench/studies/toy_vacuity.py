"""Toy experiment: the vacuity that evidential learning is left with under perfect interpolation.

Two Gaussian clouds that a network can tell apart without error. Whatever the data, the vacuity at
the training points tends to ``k / (alpha0 + nu)``: it says what nu was, not what the data were.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..results.paper import published_toy
from ..results.receipt import receipt

if TYPE_CHECKING:
    import torch
    from pandas import DataFrame

__all__ = ["NUS", "run", "vacuity_frame"]

#: The released code's values; the paper prints all but 1000.
NUS = (1, 5, 10, 50, 100, 500, 1000)

_CENTRE = 7.0
_FAR = 50.0


def run(
    nus: Iterable[float] = NUS,
    *,
    n_points: int = 100_000,
    steps: int = 3000,
    seed: int = 12,
    progress: Callable[[dict[str, Any]], object] | None = None,
) -> list[dict[str, Any]]:
    """Train one network for each nu and describe the vacuity of its training points.

    Half of the points are N((0, 0), I), half N((7, 7), I). A 2-64-64-64-2 network with ReLU
    evidence and prior ones is trained on all points at once, by Adam at 5e-3, with
    ``mean[psi(S) - psi(alpha_y) + KL(Dir(alpha) || Dir(1)) / nu]``. The optimum does not
    depend on the number of points (Propositions 2.10 and 2.12); 100,000 are the paper's.

    With some seeds (5 of 0 to 15, at 200 points and nu = 10) the output unit of a class dies and
    its points never get evidence; no other seed is tried then, `dead_classes` of the row says so.
    A row has the vacuity's ``mean``, ``median``, ``sd`` (population), ``min`` and ``max``;
    ``theory``, ``2 / (2 + nu)``; ``paper``, the printed mean and sd or None; ``far``, the median
    vacuity on a circle of radius 50 around the clouds, where no data are; ``loss`` and the smallest
    one possible, ``loss_optimum``; and the receipt. `progress` is called with each row.
    """
    values = [float(nu) for nu in nus]
    if not all(0 < nu < math.inf for nu in values):
        raise ValueError(f"nus must be finite and > 0, got {values}; nu = 1 is Bayes' rule")
    if n_points < 2 or n_points % 2:
        raise ValueError(f"n_points must be even and >= 2, got {n_points!r}: half for each class")
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n_points) % 2)
    X = rng.normal(size=(n_points, 2)) + _CENTRE * y[:, None]
    rows = []
    for nu in values:
        rows.append(_row(nu, X, y, steps, seed))
        if progress is not None:
            progress(rows[-1])
    return rows


def vacuity_frame(rows: Sequence[Mapping[str, Any]]) -> DataFrame:
    """Return the rows of `run` as text, the paper's numbers beside ours."""
    from pandas import DataFrame

    def texts(row: Mapping[str, Any]) -> dict[str, str]:
        numbers = {n: f"{row[n]:.4f}" for n in ("theory", "mean", "sd", "min", "max", "far")}
        paper, dead = row["paper"], ", ".join(map(str, row["dead_classes"]))
        return {
            "nu": f"{row['nu']:g}",
            **numbers,
            "paper": f"{paper['mean']:.3f} ±{paper['sd']:.4f}" if paper else "not printed",
            "dead": f"class {dead} never gets evidence" if dead else "",
        }

    return DataFrame(map(texts, rows))


def _row(nu: float, X: np.ndarray, y: np.ndarray, steps: int, seed: int) -> dict[str, Any]:
    start = time.perf_counter()
    alpha, far, loss = _train_network(nu, X, y, steps, seed)
    u, paper = 2 / alpha.sum(axis=1), published_toy().get(nu)
    return {
        "experiment": "toy_vacuity",
        "nu": nu,
        "mean": float(u.mean()),
        "median": float(np.median(u)),
        "sd": float(u.std()),
        "min": float(u.min()),
        "max": float(u.max()),
        "theory": 2 / (2 + nu),
        "paper": None if paper is None else {"mean": paper.mean, "sd": paper.sd},
        "far": float(np.median(2 / far.sum(axis=1))),
        "loss": loss,
        # what is left at the optimum: -log E_prior[p_y^nu] / nu, and E[p^nu] = 1 / (1 + nu)
        "loss_optimum": math.log1p(nu) / nu,
        "dead_classes": [k for k in range(2) if not (alpha[:, k] > 1).any()],
        "n_points": len(y),
        "steps": steps,
        "seed": seed,
        "seconds": round(time.perf_counter() - start, 3),
        **receipt(),
    }


def _train_network(
    nu: float, X: np.ndarray, y: np.ndarray, steps: int, seed: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Concentrations at the training points and far away, and the loss at the end."""
    import torch

    from dipedl.networks import MLP, Training, expected_cross_entropy, kl_to_prior, train

    def loss(outputs: torch.Tensor, target: torch.Tensor, *, epoch: int) -> torch.Tensor:
        alpha = 1 + outputs.relu()
        each: torch.Tensor = expected_cross_entropy(alpha, target) + kl_to_prior(alpha) / nu
        return each.mean()

    data = torch.tensor(X, dtype=torch.float32), torch.tensor(y)
    network = MLP((64, 64, 64)).build((1, 1, 2), 2, torch.Generator().manual_seed(seed))
    angle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    far = _CENTRE / 2 + _FAR * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    # Small matrices gain nothing from more threads.
    threads = 1 if len(y) < 10_000 else None
    settings = Training(
        epochs=steps, batch_size=len(y), learning_rate=5e-3, device="cpu", n_jobs=threads
    )
    train(network, loss, data, settings, seed=seed)
    with torch.inference_mode():
        outputs = network(data[0])
        away = network(torch.tensor(far, dtype=torch.float32))
        last = float(loss(outputs, data[1], epoch=steps))
        at_points, beyond = ((1 + of.relu()).double().numpy() for of in (outputs, away))
        return at_points, beyond, last
