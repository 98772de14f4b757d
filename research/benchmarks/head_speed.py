"""Time that a class-conditional Gaussian adds to a network's forward pass, and to its loader.

Peers of the densities: gaussian_scale.py.
"""

import math
import time
from functools import partial

import harness
import torch
from harness import in_new_process, median_seconds, paired_seconds, peak_kib
from torch import Tensor

from dipedl.networks import LeNet5
from dipedl.pretrained import ClassGaussians, DIPModule
from dipedl_bench.paper_networks import WideResNet

K = 10
FORMS = ("full", "tied", "low-rank")
_NETWORKS = {
    "wrn-28-10": (WideResNet(), (3, 32, 32), 640, (32,)),
    "lenet5": (LeNet5(), (1, 28, 28), 500, (32, 256)),
}
N_FIT = 10_000
LOADER, REPEATS, THREADS = 8192, 7, torch.get_num_threads()
LARGE = {"k": 1000, "p": 2048, "rows": 256, "n_fit": 16_384, "forms": ("tied", "low-rank")}


def problem(n: int, p: int, k: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    means = torch.randn(k, p, generator=torch.Generator().manual_seed(1))
    y = torch.arange(n) % k
    return torch.randn(n, p, generator=generator) + means[y], y


def fit_density(form: str, X: Tensor, y: Tensor, k: int = K) -> ClassGaussians:
    density = ClassGaussians(form)
    for rows in torch.arange(len(X)).split(256):
        density.update(X[rows], y[rows], k)
    return density.finish()


def overheads() -> dict[str, float]:
    """Return seconds of the forward pass, and of each form alone as a share of them."""
    values: dict[str, float] = {}
    for name, (backbone, shape, p, batches) in _NETWORKS.items():
        network = backbone.build(shape, K, torch.Generator().manual_seed(0)).eval()
        densities = {form: fit_density(form, *problem(N_FIT, p, K)) for form in FORMS}
        for rows in batches:
            pixels = torch.rand(rows, *shape, generator=torch.Generator().manual_seed(0)).flatten(1)
            features = network.features(pixels)
            calls = {form: partial(density, features) for form, density in densities.items()}
            times = paired_seconds({"network": partial(network, pixels), **calls}, REPEATS)
            values[f"{name}, {rows} rows: network s"] = times["network"]
            for form in FORMS:
                share = times[form] / times["network"]
                values[f"{name}, {rows} rows: {form} alone"] = share
    return values


def loader_passes() -> dict[str, float]:
    """Seconds of `fit_density` over a loader, over those of the network's passes alone."""
    values = {}
    for name, (backbone, shape, _, (batch, *_)) in _NETWORKS.items():
        network = backbone.build(shape, K, torch.Generator().manual_seed(0)).eval()
        some = torch.randn(LOADER, math.prod(shape), generator=torch.Generator().manual_seed(0))
        loader = [(X, torch.arange(len(X)) % K) for X in some.split(batch)]
        # The deeper network is slow, and what is learned once is a small part of its passes.
        loader = loader if name == "lenet5" else loader[: max(2, len(loader) // 32)]
        times = paired_seconds(
            {
                "network": lambda network=network, loader=loader: [network(X) for X, _ in loader],
                "fit": lambda network=network, loader=loader: DIPModule(network).fit_density(
                    loader
                ),
            },
            REPEATS,
        )
        seen = sum(len(X) for X, _ in loader)
        values[f"{name}, {seen} rows: fit_density"] = times["fit"] / times["network"]
    return values


def large(form: str) -> dict[str, float]:
    """Fit and score 1,000 classes of 2,048 features in this process, a new one."""
    k, p, rows, n_fit = (LARGE[name] for name in ("k", "p", "rows", "n_fit"))
    Q, _ = problem(rows, p, k, seed=2)
    torch.linalg.eigh((Q[:40] @ Q[:40].mT).double())
    means = torch.randn(k, p, generator=torch.Generator().manual_seed(1))
    before = peak_kib()
    density, seconds = ClassGaussians(form), 0.0
    for start in range(0, n_fit, rows):
        y = torch.arange(start, start + rows) % k
        X = torch.randn(rows, p) + means[y]
        begin = time.perf_counter()
        density.update(X, y, k)
        seconds += time.perf_counter() - begin
    density.finish()
    with torch.no_grad():
        score = median_seconds(lambda: density(Q))
    name = f"1000 x 2048 {form}: "
    return {
        name + "peak GiB": (peak_kib() - before) / 2**20,
        name + "fit rows per s": n_fit / seconds,
        name + "score rows per s": rows / score,
    }


def measure() -> harness.Values:
    values: dict[str, float] = {}
    with torch.inference_mode():
        values |= overheads()
    with torch.no_grad():
        values |= loader_passes()
    for form in LARGE["forms"]:
        values |= in_new_process(large, form)
    return {name: round(value, 4) for name, value in values.items()}


if __name__ == "__main__":
    harness.main(__file__, measure)
