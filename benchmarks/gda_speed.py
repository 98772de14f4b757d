"""Speed of the class-conditional Gaussian against BLAS, torch and QDA, in one run."""

import time

import numpy as np
import receipt
import torch
from sklearn.discriminant_analysis import QuadraticDiscriminantAnalysis
from timing import paired_seconds

from dipedl.density import GDADensity

SCORE = {"k": 10, "p": 640, "n": 8192, "n_fit": 20_000}
FIT = {"k": 10, "p": 256, "n": 200_000}
REPEATS = 9


def problem(n: int, p: int, k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, k, n)
    means = rng.normal(size=(k, p))
    return rng.normal(size=(n, p)) + means[y], y


def torch_scorer(density: GDADensity, X: np.ndarray):
    means = torch.tensor(np.stack([m.mean for m in density.moments_]))
    shrunk = [
        (1 - s) * m.covariance + s * t * np.eye(X.shape[1])
        for m, s, t in zip(density.moments_, density.shrinkage_, density.target_, strict=True)
    ]
    normal = torch.distributions.MultivariateNormal(means, torch.tensor(np.stack(shrunk)))
    rows = torch.tensor(X)

    def score() -> torch.Tensor:
        with torch.no_grad():
            # In chunks, as its n x k x p x p broadcast would not fit otherwise.
            parts = [normal.log_prob(c[:, None, :]) for c in rows.split(256)]
            return torch.logsumexp(torch.cat(parts), dim=1) - np.log(means.shape[0])

    return score


def scoring() -> dict[str, float]:
    X, y = problem(SCORE["n_fit"], SCORE["p"], SCORE["k"])
    Q, _ = problem(SCORE["n"], SCORE["p"], SCORE["k"], seed=1)
    density = GDADensity().fit(X, y)
    qda = QuadraticDiscriminantAnalysis(reg_param=0.01).fit(X, y)
    by_torch = torch_scorer(density, Q)
    np.testing.assert_allclose(by_torch().numpy(), density.score_samples(Q), rtol=1e-9)
    dense = [np.asfortranarray(f.whitener.T) for f in density._factors()]
    times = paired_seconds(
        {
            "ours": lambda: density.score_samples(Q),
            # A dense product does 2 n p^2 flops a class; ours needs the triangle's n p^2.
            "dense": lambda: [Q @ w for w in dense],
            "torch": by_torch,
            "qda": lambda: qda.predict_log_proba(Q),
        },
        REPEATS,
    )
    ours = times["ours"]
    return {
        "score_s": ours,
        "score_ratio_to_dense_blas_product": ours / times["dense"],
        "score_ratio_to_half_a_dense_blas_product": 2 * ours / times["dense"],
        "score_speedup_over_torch_mvn": times["torch"] / ours,
        "score_speedup_over_qda": times["qda"] / ours,
    }


def fitting() -> dict[str, float]:
    X, y = problem(FIT["n"], FIT["p"], FIT["k"])
    times = paired_seconds(
        {
            "ours": lambda: GDADensity().fit(X, y),
            "qda": lambda: QuadraticDiscriminantAnalysis().fit(X, y),
            "eigen": lambda: QuadraticDiscriminantAnalysis(solver="eigen").fit(X, y),
        },
        REPEATS,
    )
    return {
        "fit_s": times["ours"],
        "fit_speedup_over_qda": times["qda"] / times["ours"],
        "fit_speedup_over_qda_eigen": times["eigen"] / times["ours"],
    }


def main() -> None:
    start = time.perf_counter()
    values = {name: round(value, 3) for name, value in (scoring() | fitting()).items()}
    config = {"score": SCORE, "fit": FIT, "repeats": REPEATS, "warmup": 1, "dtype": "float64"}
    receipt.write("gda_speed", config, values, time.perf_counter() - start)


if __name__ == "__main__":
    main()
