"""Far queries of many fits of difficult data: every one must be unknown.

``python benchmarks/far_from_everything.py --fits 100`` makes some of them; each fit has its seed.
"""

import warnings
from collections import Counter
from typing import Any

import harness
import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler
from sklearn.tree import DecisionTreeClassifier

from dipedl import DIPClassifier

DISTANCES = (1e3, 1e6, 1e12, 1e50, 1e150)
LEAST_VACUITY = 0.99
Data = tuple[np.ndarray, np.ndarray]


def draw_normal(rng: np.random.Generator, n: int, p: int, k: int) -> Data:
    """Classes that overlap more or less, features that depend on one another more or less."""
    y = rng.permutation(np.arange(n) % k)
    centers = rng.normal(size=(k, p)) * rng.choice([0.3, 1.0, 3.0])
    mixing = np.eye(p) + rng.choice([0.0, 1.0]) * rng.normal(size=(p, p))
    return (centers[y] + rng.normal(size=(n, p))) @ mixing, y


def add_redundant_columns(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Repeated, added and constant columns."""
    X[:, -1] = X[:, 0]
    X[:, X.shape[1] // 2] = X.sum(axis=1) if rng.random() < 0.5 else 7.0
    return X


def scale_rows(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    factor = rng.choice(len(X), rng.integers(1, 4), replace=False)
    X[factor] *= rng.choice([100.0, 1e4, -1e6])
    return X


def skew_columns(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    return np.exp(X * rng.choice([0.5, 1.0, 3.0], X.shape[1]).clip(max=600 / np.abs(X).max()))


def add_heavy_tails(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    some = rng.random(X.shape[1]) < rng.choice([0.3, 1.0])
    return np.where(some, X + rng.standard_cauchy(X.shape), X)


#: What is done to rows of `draw_normal`.
_CHANGES = {
    "normal": lambda rng, X: X,
    "outlying rows": scale_rows,
    "sentinels": lambda rng, X: np.where(
        rng.random(X.shape) < rng.choice([0.01, 0.05, 0.2]), -9999.0, X
    ),
    "heavy tails": add_heavy_tails,
    "skewed": skew_columns,
    "binary": lambda rng, X: (X > rng.normal(size=X.shape[1])).astype(float),
    "counts": lambda rng, X: rng.poisson(np.exp(X.clip(max=4))).astype(float),
    "sparse": lambda rng, X: np.where(rng.random(X.shape) < rng.choice([0.02, 0.1, 0.3]), X, 0.0),
    "redundant": add_redundant_columns,
    "units": lambda rng, X: X * 10.0 ** rng.integers(-6, 10, X.shape[1]) + rng.choice([0.0, 1e4]),
}
KINDS = [*_CHANGES, "mixed"]


def rows_of(kind: str, rng: np.random.Generator, n: int, p: int, k: int) -> Data:
    if kind == "mixed":
        return mix_kinds(rng, n, p, k)
    X, y = draw_normal(rng, n, p, k)
    return _CHANGES[kind](rng, X), y


def mix_kinds(rng: np.random.Generator, n: int, p: int, k: int) -> Data:
    """Each column from another kind."""
    kinds, columns = list(_CHANGES), []
    seed = rng.integers(2**31)
    for j in range(p):
        # The same labels throughout; the columns differ by the state of the generator after.
        own = np.random.default_rng(seed)
        y = own.permutation(np.arange(n) % k)
        X, labels = rows_of(kinds[rng.integers(len(kinds))], rng, n, p, k)
        columns.append(X[np.argsort(labels, kind="stable"), j])
    return np.column_stack(columns)[np.argsort(np.argsort(y, kind="stable"))], y


def classifier(rng: np.random.Generator) -> Any:
    seed = int(rng.integers(2**31))
    return [
        make_pipeline(RobustScaler(), LogisticRegression(max_iter=200)),
        GaussianNB(),
        DecisionTreeClassifier(max_depth=5, random_state=seed),
        RandomForestClassifier(8, random_state=seed),
    ][rng.integers(4)]


def far_inputs(rng: np.random.Generator, X: np.ndarray) -> np.ndarray:
    """Along axes and random directions, from the mean and from rows, in standard deviations."""
    p = X.shape[1]
    spread = X.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    axes = np.eye(p)[rng.choice(p, min(p, 6), replace=False)]
    random = rng.normal(size=(6, p))
    directions = np.vstack([axes, -axes, random / np.linalg.norm(random, axis=1)[:, None]])
    starts = np.where(
        rng.random((len(directions), 1)) < 0.5, X.mean(axis=0), X[rng.integers(len(X))]
    )
    return np.vstack([starts + t * spread * directions for t in DISTANCES])


def is_answered(model: Any, X: np.ndarray) -> np.ndarray:
    """Mark rows of X that the bare classifier answers: trees refuse what float32 cannot hold."""

    def answers(x: np.ndarray) -> bool:
        try:
            return bool(abs(model.predict_proba(x[None]).sum() - 1) < 1e-6)
        except ValueError:
            return False

    with np.errstate(all="ignore"):
        return np.array([answers(x) for x in X])


def outcome(seed: int) -> dict[str, Any]:
    """One fit and its far queries."""
    rng = np.random.default_rng([13, seed])
    kind = KINDS[seed % len(KINDS)]
    n, p, k = int(rng.integers(60, 400)), int(rng.integers(2, 13)), int(rng.integers(2, 5))
    X, y = rows_of(kind, rng, n, p, k)
    model = classifier(rng)
    row = {"seed": seed, "kind": kind, "n": n, "p": p, "k": k, "classifier": type(model).__name__}
    far = far_inputs(rng, X)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            clf = DIPClassifier(model, random_state=0).fit(X, y)
        except ValueError as error:
            return row | {"refused": str(error)[:300]}
    warned = [str(w.message)[:300] for w in caught if issubclass(w.category, UserWarning)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        far = far[is_answered(clf.estimator_, far)]
        missed = clf.predict_ood(far) == 1
        low = clf.predict_dirichlet(far).vacuity <= LEAST_VACUITY
    return row | {
        "missed": int(missed.sum()),
        "low": int(low.sum()),
        "queries": len(far),
        "said": [s for s in warned if "far" in s],
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    failures = [r for r in rows if r.get("missed") or r.get("low")]
    silent = [r for r in failures if not r["said"]]
    return {
        "fits": len(rows),
        "refused": sum("refused" in r for r in rows),
        "said": sum(bool(r.get("said")) for r in rows),
        "failures": len(failures),
        "silent failures": len(silent),
        "silent, by kind": dict(Counter(r["kind"] for r in silent)),
        "queries": sum(r.get("queries", 0) for r in rows),
    }


def measure(fits: int = 10_000) -> harness.Values:
    rows = []
    for seed in range(fits):
        rows.append(row := outcome(seed))
        if (row.get("missed") or row.get("low")) and not row["said"]:
            print("silent:", row, flush=True)
    return summary(rows)


if __name__ == "__main__":
    harness.main(__file__, measure)
