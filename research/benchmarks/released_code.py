"""Train R-EDL and Re-EDL on MNIST by their released code, to see if that has the paper's numbers.

Networks, losses, optimiser and training loop are those of a clone of the paper's repository,

    git clone https://github.com/NevenaGligic/DIP-EDL

in the working directory, or where `--source` says; rows are those of our profiles with the same
seed. The network that the released loop keeps, the best on validation rows, is scored with the
prior that it was trained with and with a prior of 1. One core needs 35 minutes for the 20 epochs
of R-EDL and two hours for the 60 of Re-EDL; `--methods` picks one.
"""

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import harness
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

from dipedl.metrics import brier_score, ood_auroc
from dipedl_bench.datasets import load_mnist
from dipedl_bench.results.metrics import ood_brier

SEED = 10
EPOCHS = {"r-edl": 20, "re-edl": 60}
LAMBDA2 = 0.1
PRIORS = (0.1, 1.0)


def measure(
    source: str = "DIP-EDL", methods: tuple[str, ...] = ("r-edl", "re-edl")
) -> dict[str, Callable[[], harness.Values]]:
    if not (Path(source) / "ICLR2024-REDL").is_dir():
        raise SystemExit("--source must be a clone of https://github.com/NevenaGligic/DIP-EDL")
    if not set(methods) <= set(EPOCHS):
        raise SystemExit(f"--methods must be of {', '.join(EPOCHS)}, got {' '.join(methods)}")
    sys.path[:0] = [source, str(Path(source) / "ICLR2024-REDL" / "code_classical")]
    sys.modules["wandb"] = ModuleType("wandb")  # imported by the loop, which does not use it here
    return {method: partial(trained, method, source) for method in methods}


def trained(method: str, source: str) -> harness.Values:
    """Return scores of a method's network, trained by the released code."""
    import train as released  # type: ignore[import-not-found]
    from src.models.R_EDL import REDL  # type: ignore[import-not-found]
    from src.models.Re_EDL import ReEDL  # type: ignore[import-not-found]

    data = load_mnist()
    order = np.random.default_rng(SEED).permutation(len(data.X_train))
    validation, training = (
        TensorDataset(images(data.X_train[part]), torch.tensor(data.y_train[part]))
        for part in (order[:12_000], order[12_000:])
    )
    torch.manual_seed(SEED)
    network = {"r-edl": REDL, "re-edl": ReEDL}[method](
        architecture="conv", batch_size=64, lamb1=1.0, lamb2=LAMBDA2, fisher_c=0.0, seed=SEED,
        input_dims=(28, 28, 1),
    ).model  # fmt: skip
    batches = DataLoader(training, 64, shuffle=True), DataLoader(validation, 64)
    with TemporaryDirectory() as folder:
        released.train(
            network, *batches, EPOCHS[method], model_path=f"{folder}/network",
            full_config_dict={"dataset_name": "MNIST", "model_type": "menet"},
        )  # fmt: skip
        best = torch.load(f"{folder}/network_best", weights_only=False)
    network.load_state_dict(best["model_state_dict"])
    network.eval()
    inputs = {"test": data.X_test} | {f"brier_ood/{name}": X for name, X in data.ood.items()}
    with torch.no_grad():
        evidence = {
            name: np.concatenate([network(part).numpy() for part in images(X).split(500)]) - LAMBDA2
            for name, X in inputs.items()
        }
    log = ["git", "-C", source, "rev-parse", "--short=12", "HEAD"]
    commit = subprocess.run(log, capture_output=True, text=True, check=True).stdout.strip()
    found: dict[str, Any] = {"released commit": commit, "best epoch": best["epoch"] + 1}
    found["accuracy"] = float((evidence["test"].argmax(axis=1) == data.y_test).mean())
    for name in data.ood:
        known, unknown = (-evidence[of].sum(axis=1) for of in ("test", f"brier_ood/{name}"))
        found[f"auroc/{name}"] = ood_auroc(known, unknown)
    for prior in PRIORS:
        alpha = {name: of + prior for name, of in evidence.items()}
        proba = {name: of / of.sum(axis=1, keepdims=True) for name, of in alpha.items()}
        found[f"{prior:g}"] = {"brier_id": brier_score(data.y_test, proba.pop("test"))} | {
            name: ood_brier(of) for name, of in proba.items()
        }
    return harness.round_numbers(found)


def images(X: np.ndarray) -> torch.Tensor:
    return torch.tensor(X.reshape(-1, 1, 28, 28))


if __name__ == "__main__":
    harness.main(__file__, measure)
