"""Which ingredient of a network lets Gaussians on its features tell unknown images.

    DIPEDL_DATA=FOLDER python benchmarks/gaussian_ingredients.py

WRN-16-2 without dropout, trained on CIFAR-10 for 8 epochs, stands for the paper's WRN-28-10;
beside it the same with spectral normalisation, with smoothed labels, with both, and of half the
width. On the features of each: Gaussians as published, and on features of unit length; beside them
the network alone. Every network that is done is kept in the receipt: the same command goes on, as
long as the commit is the same.
"""

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import receipt
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

from dipedl import metrics
from dipedl.density import GDADensity
from dipedl.networks import CropFlip, TorchClassifier, Training, WideResNet
from dipedl_bench.datasets.splits import make_splits

SEEDS = (10,)
OOD = ("cifar100", "gtsrb")
TRAINING = Training(
    epochs=8,
    batch_size=250,
    optimizer="sgd",
    learning_rate=0.2,
    weight_decay=5e-4,
    schedule="one-cycle",
    augment=CropFlip(shift=4),
    amp=True,
)
#: 1e-6 stands for the released jitter: a feature may be constant within a class.
DENSITIES = {
    "gaussians": GDADensity(shrinkage=1e-6),
    "unit length": make_pipeline(Normalizer(), GDADensity(shrinkage=1e-6)),
}


def networks() -> dict[str, dict[str, Any]]:
    """Arguments of the classifiers by ingredient."""

    def made(width: int = 2, spectral_norm: bool = False, smoothing: float = 0.0) -> dict[str, Any]:
        backbone = WideResNet(16, width, dropout=0.0, spectral_norm=spectral_norm)
        return {"backbone": backbone, "label_smoothing": smoothing}

    return {
        "none": made(),
        "spectral norm": made(spectral_norm=True),
        "label smoothing": made(smoothing=0.1),
        "both": made(spectral_norm=True, smoothing=0.1),
        "half the width": made(width=1),
    }


def figures(arguments: dict[str, Any], seed: int, splits: Any) -> Iterator[tuple[str, float]]:
    """Accuracy, and AUROC of each score on each OOD set."""
    X, y = splits.X, splits.y
    network = TorchClassifier(
        training=TRAINING, image_shape=(3, 32, 32), random_state=seed, **arguments
    )
    start = time.perf_counter()
    network.fit(X["train"], y["train"])
    yield "train_s", round(time.perf_counter() - start)
    names = ["test", *(f"ood/{name}" for name in OOD)]
    Z = {name: network.transform(X[name]) for name in ("train", *names)}
    P = {name: network.predict_proba(X[name]) for name in names}
    yield "accuracy", float((P["test"].argmax(1) == y["test"]).mean())
    lengths = np.linalg.norm(Z["train"], axis=1)
    yield "sd of log length", float(np.log(lengths).std())
    scores = {"max softmax": {name: P[name].max(1) for name in names}}
    for title, density in DENSITIES.items():
        fitted = density.fit(Z["train"], y["train"])
        scores[title] = {name: fitted.score_samples(Z[name]) for name in names}
    for title, of in scores.items():
        for name in OOD:
            yield f"{title}, {name}", metrics.ood_auroc(-of["test"], -of[f"ood/{name}"])


def main() -> None:
    config = {
        "data": "CIFAR-10, 40,000 train / 10,000 test; CIFAR-100 test; GTSRB (third-party resize)",
        "networks": {name: repr(made) for name, made in networks().items()},
        "training": repr(TRAINING),
        "densities": repr(DENSITIES),
        "seeds": SEEDS,
    }
    values, seconds = receipt.begun("gaussian_ingredients", config)
    data = {"dataset": "cifar10", "ood": OOD, "validation_fraction": 0.2}
    data["limit"] = dict.fromkeys(("train", "validation", "test", "ood"))
    for seed in SEEDS:
        splits = make_splits(data, seed)
        for name, arguments in networks().items():
            if f"{name}, seed {seed}" in values:
                continue
            start = time.perf_counter()
            found = {k: round(v, 5) for k, v in figures(arguments, seed, splits)}
            values[f"{name}, seed {seed}"] = found
            seconds += time.perf_counter() - start
            receipt.write("gaussian_ingredients", config, values, seconds)


if __name__ == "__main__":
    main()
