"""Full MNIST against K-MNIST and Omniglot: one Gaussian a class on the pixels."""

import time

import numpy as np
import receipt

from dipedl import metrics
from dipedl.density import GDADensity
from dipedl_bench import datasets

SHRINKAGE = ("oas", "ledoit-wolf")


def main() -> None:
    start = time.perf_counter()
    data = datasets.load_mnist(ood=("kmnist", "omniglot", "omniglot_inverted"))
    values = {"load_wall_s": round(time.perf_counter() - start, 2)}
    for shrinkage in SHRINKAGE:
        cpu, wall = time.process_time(), time.perf_counter()
        density = GDADensity(shrinkage=shrinkage).fit(data.X_train, data.y_train)
        fit_cpu = time.process_time() - cpu
        scores = {name: -density.score_samples(X) for name, X in data.ood.items()}
        inside = -density.score_samples(data.X_test)
        values[shrinkage] = {
            "fit_cpu_s": round(fit_cpu, 2),
            "fit_and_score_cpu_s": round(time.process_time() - cpu, 2),
            "fit_and_score_wall_s": round(time.perf_counter() - wall, 2),
            "shrinkage_mean": float(np.mean(density.shrinkage_).round(5)),
            "auroc": {n: round(metrics.ood_auroc(inside, s), 5) for n, s in scores.items()},
            "fpr95": {n: round(metrics.fpr_at_tpr(inside, s), 5) for n, s in scores.items()},
            "accuracy_of_the_largest_class_density": round(
                float((density.class_log_density(data.X_test).argmax(1) == data.y_test).mean()), 4
            ),
        }
    config = {
        "data": "MNIST 60,000 train / 10,000 test; K-MNIST test 10,000; Omniglot evaluation 13,180",
        "features": "pixels / 255",
        "shrinkage": SHRINKAGE,
        "seed": "none: nothing is random",
    }
    receipt.write("mnist_pixels", config, values, time.perf_counter() - start)


if __name__ == "__main__":
    main()
