"""Gaussian densities against every peer: seconds, memory and accuracy, and how they grow.

``python benchmarks/gaussian_scale.py`` writes results/gaussian_scale.json and the picture
docs/images/gaussian_scale.png, in a quarter of an hour on two idle cores; ``--short --dry`` runs
tiny problems. With ``--threads 1`` seconds are CPU seconds, which mean the same on a busy machine.
Peers: see gaussian_peers.py.
"""

import argparse
import gc
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import gaussian_peers as peers
import harness
import numpy as np
import torch
from harness import in_new_process, paired_seconds, peak_kib

#: Problems (n, p, k): three lines through the first, and one that is long.
BASE = (100_000, 64, 10)
LINES = {
    "n": [(10_000, 64, 10), BASE, (1_000_000, 64, 10)],
    "p": [(100_000, 16, 10), BASE, (100_000, 256, 10), (100_000, 640, 10)],
    "k": [(100_000, 64, 2), BASE, (100_000, 64, 100), (100_000, 64, 1000)],
}
LONG = (10_000_000, 16, 10)
GRID = [*dict.fromkeys(problem for line in LINES.values() for problem in line), LONG]
SHORT = [(2_000, 16, 2), (2_000, 16, 20)]
MEMORY = (1_000_000, 64, 10)
LONG_PEERS = (peers.OURS, peers.OURS32, peers.DDU, peers.EIGEN)
ACCURACY = [(16, 1.0), (16, 1e4), (256, 1.0), (256, 1e4), (256, 1e7)]
SCORED, REPEATS = 8192, 5
#: From so many n p p on, a third of the repetitions.
LARGE = 1e9


def key(problem: tuple[int, int, int]) -> str:
    return "n = {:,}, p = {}, k = {}".format(*problem)


def data(n: int, p: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Rows of k Gaussians; each class has its own mean, and each feature its own scale."""
    rng = np.random.default_rng(seed)
    means = np.random.default_rng(1).standard_normal((k, p))
    y = rng.integers(0, k, n)
    y[: 2 * k] = np.arange(2 * k) % k
    X = rng.standard_normal((n, p))
    X *= np.geomspace(0.1, 10, p)
    X += means[y]
    return X, y


def times(problem: tuple[int, int, int], repeats: int) -> dict[str, Any]:
    """Seconds of all that fit and score one problem, in turn, and the rate of this machine."""
    n, p, k = problem
    X, y = data(n, p, k)
    fits = peers.fits(X, y, k)
    if problem == LONG:
        fits = {name: fits[name] for name in LONG_PEERS}
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    repeats = repeats if n * p * p < LARGE else max(1, repeats // 3)
    found: dict[str, Any] = {"fit": paired_seconds(fits, repeats, clock)}
    if problem != LONG:
        Q, _ = data(SCORED, p, k, seed=2)
        found["score"] = paired_seconds(peers.scores(X, y, Q, k), repeats, clock)
    found["gemm"] = {name: gemm(name, clock) for name in ("float64", "float32")}
    return found


def gemm(dtype: str, clock: Callable[[], float], size: int = 1024) -> float:
    """Floating-point operations a second of a matrix product."""
    A = np.random.default_rng(0).random((size, size)).astype(dtype)
    return 2 * size**3 / paired_seconds({"": lambda: A @ A}, 7, clock)[""]


def memory(name: str, problem: tuple[int, int, int]) -> float:
    """Most bytes that a fit takes beside its rows, in this process; a small fit comes first."""
    n, p, k = problem
    peers.fits(*data(4 * p * k, p, k), k)[name]()
    call = peers.fits(*data(n, p, k), k)[name]
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = peak_kib()
    call()
    return (peak_kib() - before) * 1024


def parts(short: bool, repeats: int) -> dict[str, Callable[[], Any]]:
    """What is measured, by name."""
    found: dict[str, Callable[[], Any]] = {}
    for p, condition in ACCURACY[: 1 if short else None]:
        name = f"error, p = {p}, condition {condition:g}"
        found[name] = partial(peers.errors, p, condition)
    for name in (peers.OURS, peers.OURS32, peers.DDU, peers.QDA, peers.EIGEN):
        problem = SHORT[0] if short else MEMORY
        found[f"memory: {name}"] = partial(in_new_process, memory, name, problem)
    for problem in SHORT if short else GRID:
        found[key(problem)] = partial(in_new_process, times, problem, repeats)
    return found


def summary(values: dict[str, Any]) -> dict[str, Any]:
    """How the seconds of a fit grow along each line, and the share of the machine's rate."""
    growth, share = {}, {}
    for along, problems in LINES.items():
        there = [problem for problem in problems if key(problem) in values]
        if len(there) < 3:
            continue
        at = [problem["npk".index(along)] for problem in there]
        for name in (peers.OURS, peers.DDU, peers.QDA, peers.EIGEN):
            seconds = [values[key(problem)]["fit"].get(name) for problem in there]
            if None not in seconds:
                slope = np.polyfit(np.log(at), np.log(seconds), 1)[0]
                growth[f"{name}, {along}"] = round(float(slope), 2)
    for problem in GRID:
        if (of := values.get(key(problem))) is None:
            continue
        n, p, k = problem
        share[key(problem)] = {"fit": n * p * p / of["fit"][peers.OURS] / of["gemm"]["float64"]}
        for name, dtype in ((peers.OURS, "float64"), (peers.OURS32, "float32")):
            if "score" in of:
                rate = SCORED * k * p * p / of["score"][name]
                share[key(problem)][f"score, {dtype}"] = rate / of["gemm"][dtype]
    return {"exponents of a fit": growth, "share of the rate of a matrix product": share}


def draw(values: dict[str, Any], file: Path) -> None:
    """Seconds of a fit along each line."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = (peers.OURS, peers.DDU, peers.EIGEN, peers.QDA, peers.LDA)
    figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), layout="constrained", sharey=True)
    for axis, (along, problems) in zip(axes, LINES.items(), strict=True):
        at = [problem["npk".index(along)] for problem in problems]
        for name, style in zip(names, ("o-", "s--", "^--", "v--", "x:"), strict=True):
            axis.loglog(at, [seconds_of(values, q, name) for q in problems], style)
        fixed = zip("npk", BASE, strict=True)
        title = ", ".join(f"{letter} = {value:,}" for letter, value in fixed if letter != along)
        axis.set(xlabel=along, title=title)
        axis.set_xticks(at, labels=[f"{value:,}" for value in at])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("seconds of a fit")
    axes[0].legend(names, frameon=False, fontsize="small")
    figure.savefig(file, dpi=120)
    plt.close(figure)


def seconds_of(values: dict[str, Any], problem: tuple[int, int, int], name: str) -> float:
    return float(values.get(key(problem), {}).get("fit", {}).get(name, np.nan))


def rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: rounded(part) for name, part in value.items()}
    return float(f"{value:.4g}") if isinstance(value, float) else value


def measure(options: argparse.Namespace) -> harness.Measured:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = str(options.threads)
    torch.set_num_threads(options.threads)
    config = {"grid": GRID, "scored": SCORED, "memory": MEMORY, "accuracy": ACCURACY}
    config |= {"repeats": options.repeats, "warmup": 1, "threads": options.threads}
    config |= {"large": LARGE, "clock": "CPU" if options.threads == 1 else "wall"}
    values: dict[str, Any] = {"load": 0.0}
    for name, part in parts(options.short, options.repeats).items():
        load = round(os.getloadavg()[0], 1)
        values |= {name: rounded(part()), "load": max(values["load"], load)}
    if not options.short:
        draw(values, harness.ROOT / "docs" / "images" / "gaussian_scale.png")
    return config, values | rounded(summary(values))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--short", action="store_true", help="tiny problems, for --dry")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--threads", type=int, default=2)
    harness.main(__file__, measure, parser)
