"""Fashion-MNIST against MNIST by the likelihood of a flow on pixels: the classic failure.

Rows of `dipedl-bench run defaults` say what the default gives on the same pair.
"""

import harness
import numpy as np

from dipedl import metrics
from dipedl.density import FlowDensity
from dipedl.evidence import RankNormal
from dipedl.networks import Dequantization, MaskedAutoregressive, Training
from dipedl_bench import datasets

N_TRAIN, N_HELD, N_ASKED, SEED = 20_000, 5_000, 5_000, 10
FLOW = MaskedAutoregressive(transforms=3, hidden=(256, 256))
TRAINING = Training(epochs=6, learning_rate=1e-3, schedule="one-cycle", clip_norm=5.0)


def measure() -> harness.Values:
    data = datasets.load_fashion_mnist(ood=("mnist", "kmnist"))
    order = np.random.default_rng(SEED).permutation(len(data.X_train))
    train, held = order[:N_TRAIN], order[N_TRAIN : N_TRAIN + N_HELD]
    ood = {name: X[:N_ASKED] for name, X in data.ood.items()}
    values = {}
    for name, jacobian in (("density of pixels", True), ("without the Jacobian", False)):
        flow = FlowDensity(
            FLOW, Dequantization(jacobian=jacobian), TRAINING, 0.1, "float32", random_state=SEED
        ).fit(data.X_train[train])
        normal = RankNormal().fit(flow.score_samples(data.X_train[held]))
        inside = flow.score_samples(data.X_test[:N_ASKED])
        scored = {name: flow.score_samples(X) for name, X in ood.items()}
        values[name] = {
            "test_nats": round(float(inside.mean()), 1),
            **{f"{k}_nats": round(float(s.mean()), 1) for k, s in scored.items()},
            "auroc": {k: round(metrics.ood_auroc(-inside, -s), 4) for k, s in scored.items()},
            "auroc_two_sided": {
                k: round(
                    metrics.ood_auroc(
                        np.abs(normal.transform(inside)), np.abs(normal.transform(s))
                    ),
                    4,
                )
                for k, s in scored.items()
            },
        }
    return values


if __name__ == "__main__":
    harness.main(__file__, measure)
