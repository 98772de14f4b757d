"""What no density is fitted to, merged with or asked: the error and the argument that it names."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from dipedl.density import (
    BlockSumDensity,
    CustomDensity,
    FusedDensity,
    GaussianDensity,
    GaussianMixtureDensity,
    GDADensity,
    KernelDensity,
    KNNDensity,
    MahalanobisDensity,
    RelativeDensity,
)
from dipedl.density.base import as_density

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 4)) @ RNG.normal(size=(4, 4)), np.arange(60) % 3
P, ONES = np.full((60, 3), 1 / 3), np.ones((60, 4))
OWN = np.eye(3)[Y] * 0.9 + P * 0.1
WEIGHTS, POINT = np.ones(60), np.full((6, 2), 0.1)
SHRINKAGE = [None, 0.0, 0.3, 1.0, "oas", "ledoit-wolf"]
ROUNDED = np.column_stack([1e8 * (1 + np.finfo(float).eps * RNG.integers(0, 2, 60)), X])
HUGE = np.vstack([X, [1.0, 1e300, 1.0, 1.0]])
PLAIN = [GaussianDensity(shrinkage=None), GaussianDensity("diag", None)]


def fused(candidates=None, **parameters):
    candidates = [("own", GDADensity())] if candidates is None else candidates
    return FusedDensity(candidates, **parameters)


def shared(rows, labels):
    return lambda: GDADensity("shared-basis", None).fit(rows, labels)


def of_points(density, labels, who):
    return lambda: density.fit(POINT, labels), ValueError, f"{who}.*all samples are the same point"


#: Call, error, and a pattern with the named argument and what came.
PARAMETERS = [
    (GaussianDensity("tied"), ValueError, "covariance_type must be one of .*got 'tied'"),
    (GaussianDensity(shrinkage="none"), ValueError, "shrinkage must be None, a number .*'none'"),
    (GDADensity("spherical"), ValueError, "covariance_type must be one of .*got 'spherical'"),
    (GDADensity(class_weights="prior"), ValueError, "class_weights must .*got 'prior'"),
    (GDADensity(shrinkage="none"), ValueError, "shrinkage must be None, a number .*'none'"),
    (GDADensity(shrinkage=np.full(3, 0.1)), TypeError, "shrinkage of each class must be a tuple"),
    *(
        (cls(shrinkage=value), ValueError, rf"shrinkage must be in \[0, 1\], got {value}")
        for cls in (GaussianDensity, GDADensity)
        for value in (1.5, -0.1, float("nan"))
    ),
    (MahalanobisDensity("shared"), ValueError, "covariance_type must be one of"),
    (MahalanobisDensity(shrinkage="much"), ValueError, "shrinkage must be None, a number"),
    (KernelDensity("normal"), ValueError, r"number > 0 or one of \['scott', 'silverman'\], got"),
    *(
        (KernelDensity(value), ValueError, f"bandwidth must be finite and > 0, got {value}")
        for value in (0.0, -1, float("nan"))
    ),
    *(
        (KNNDensity(k), ValueError, f"n_neighbors must be an integer >= 1, got {k}")
        for k in (0, -1)
    ),
    (KNNDensity(61), ValueError, r"n_neighbors must lie in 1\.\.n_samples = 60, got 61"),
    (KNNDensity(max_rows=5), ValueError, "max_rows must be None or at least n_neighbors = 10"),
    (GaussianMixtureDensity(61), ValueError, "n_components must not exceed n_samples = 60, got 61"),
    (BlockSumDensity([3, 2]), ValueError, r"add up to the 4 columns of X, got 5: \[3, 2\]"),
    (BlockSumDensity([]), ValueError, "add up to the 4 columns"),
    *(
        (BlockSumDensity(blocks), TypeError, "blocks must be a sequence of widths > 0")
        for blocks in ([4, 0], [slice(0, 3), 1], [2.0, 2.0], 4)
    ),
    (RelativeDensity(background="gda"), TypeError, "background must be an object with a method"),
    *(
        (CustomDensity(model), TypeError, f"score_samples or log_prob, got {type(model).__name__}")
        for model in (object(), "gda", None, np.ones(3))
    ),
    *(
        (fused(margin=value), ValueError, "margin must be finite and >= 0")
        for value in (-1.0, np.nan, np.inf)
    ),
    *(
        (fused([(n, GDADensity()) for n in names]), ValueError, "candidates must be .* a name each")
        for names in (["classifier"], ["a", "a"], [])
    ),
    *(
        (fused(wrong), ValueError, r"candidates must be \(name, density\) pairs.*such as")
        for wrong in ("gda", [GDADensity()], GDADensity(), [(0, GDADensity())])
    ),
]
CASES = [
    *((lambda d=d: d.fit(X, Y), error, message) for d, error, message in PARAMETERS),
    *(
        (lambda d=d: d.partial_fit(X, Y), error, message)
        for d, error, message in PARAMETERS
        if isinstance(d, GaussianDensity) or type(d) is GDADensity
    ),
    *(
        (lambda v=v: as_density(v), TypeError, r"density must be .*got.*GDA.*KNNDensity\(\)")
        for v in ("knn", 42, KNNDensity)
    ),
    # covariances that have no inverse
    *(
        (lambda c=c, u=u: GaussianDensity(c, "ledoit-wolf").fit(X * u), ValueError, "fourth mom")
        for c in ("full", "diag")
        for u in (1e-100, 1e100)
    ),
    *(
        (lambda s=s: PLAIN[0].fit(np.column_stack([X, X[:, 1] * s])), ValueError, "rank 4, .*drop")
        for s in (1.0, 1e-9, 1e9)
    ),
    (lambda: PLAIN[0].fit(X[:3]), ValueError, r"rank 2, n_samples = 3\) .*shrinkage='oas'"),
    *(
        (lambda d=d, v=v: d.fit(np.insert(X, [1, 2], v, 1)), ValueError, r"\[1, 3\].*shrinkage=")
        for d in PLAIN
        for v in (0.0, 0.1, 1e6)
    ),
    (lambda: PLAIN[0].fit(ROUNDED), ValueError, r"features \[0\] are constant"),
    *(
        (
            lambda c=c: GDADensity(c, None).fit(np.insert(X, 1, 0.1, axis=1), Y),
            ValueError,
            rf"{'the tied covariance' if c == 'tied' else 'class 0'}: features \[1\] are constant",
        )
        for c in ("full", "diag", "shared-basis", "tied")
    ),
    (shared(np.c_[X, X[:, 0] - X[:, 1]], Y), ValueError, "class 0: .*5 features is singular"),
    (shared(np.r_[X, ONES[:5]], np.append(Y, [3] * 5)), ValueError, "class 3: .*the same point"),
    *(of_points(GaussianDensity(c, s), None, "") for c in ("full", "diag") for s in SHRINKAGE),
    *(
        of_points(GDADensity(c, s), list("aabbab"), "the tied" if c == "tied" else "class 'a'")
        for c in ("full", "diag", "tied")
        for s in SHRINKAGE
    ),
    of_points(GDADensity("shared-basis"), [0, 1] * 3, ""),
    *(
        (lambda c=c, s=s: GaussianDensity(c, s).fit(HUGE), ValueError, r"1e\+300 at row 60, column")
        for c in ("full", "diag")
        for s in SHRINKAGE
    ),
    # labels, weights and probabilities
    (lambda: GDADensity().fit(X, None), ValueError, "requires y .* use GaussianDensity"),
    (lambda: GDADensity().fit(X, Y[:-1]), ValueError, "inconsistent numbers of samples"),
    (lambda: GDADensity().fit(X, X[:, 0]), ValueError, "Unknown label type"),
    (lambda: MahalanobisDensity().fit(X, None), ValueError, "MahalanobisDensity requires y"),
    (lambda: RelativeDensity().fit(X), ValueError, "GDADensity requires y"),
    *(
        (lambda d=d: d.fit(X, Y, WEIGHTS), ValueError, r"KNNDensity\.fit does not take it")
        for d in (RelativeDensity(None, KNNDensity(5)), BlockSumDensity([2, 2], KNNDensity(5)))
    ),
    (lambda: RelativeDensity().fit(X, Y, -WEIGHTS), ValueError, "sample_weight must be >= 0"),
    (lambda: fused().fit(X, None, proba=P), ValueError, "proba needs y"),
    (lambda: fused().fit(X, Y, proba=P[:9]), ValueError, r"\(60, 3\), got \(9, 3\)"),
    (lambda: fused().fit(X, Y, proba=P.repeat(2, 1) / 2), ValueError, r"\(60, 3\), got \(60, 6\)"),
    (lambda: fused().fit(X, Y, proba=-P), ValueError, "proba.*probabilities >= 0"),
    (lambda: fused().fit(X, Y, proba=P * 2), ValueError, "proba.*sum"),
    (lambda: fused().fit(X, Y).score_samples(X, proba=P), ValueError, "was fitted without proba"),
    (lambda: fused().fit(X, Y, proba=OWN).score_samples(X), ValueError, "needs proba"),
    # blocks
    (
        lambda: BlockSumDensity([2, 3, 2]).fit(np.c_[X, ONES[:, :3]], Y),
        ValueError,
        r"columns 5 to 6 cannot be fitted \(columns \[5, 6\]",
    ),
    (
        lambda: BlockSumDensity([2, 2], KernelDensity(), cv=2).fit(np.c_[X[:, :2], ONES[:, :2]], Y),
        ValueError,
        r"held-out scores of blocks \[1\] are all alike",
    ),
    (lambda: GaussianMixtureDensity(1).fit(X[:1]), ValueError, "minimum of 2 is required"),
    # sums and questions
    *(
        (lambda a=a, b=b: a.fit(X[:, :1], Y) + b.fit(X[:, :1], Y), ValueError, "different param")
        for a, b in (
            (GaussianDensity(shrinkage=0.2), GaussianDensity(shrinkage=0.5)),
            (GaussianDensity(), GaussianDensity("diag")),
            (MahalanobisDensity(), GDADensity("tied")),
        )
    ),
    (lambda: GDADensity().fit(X, Y) + GaussianDensity().fit(X), TypeError, "unsupported operand"),
    (lambda: GDADensity().fit(X, Y) + GDADensity().fit(X[:, :2], Y), ValueError, "features"),
    (lambda: GDADensity().fit(X, Y) + GDADensity(), ValueError, "not fitted"),
    (lambda: GDADensity().explain_rows(X), NotFittedError, "not fitted"),
    (lambda: GDADensity().fit(X, Y).explain_rows(X[:, :3]), ValueError, "4 features"),
]


@pytest.mark.parametrize(("call", "error", "message"), CASES)
def test_it_is_refused_by_name(call, error, message):
    with np.errstate(all="raise", under="ignore"), pytest.raises(error, match=f"(?s){message}"):
        call()


SINGULAR = [X[:3], np.insert(X, 1, 0.1, axis=1), np.column_stack([X, X[:, 1]])]


@pytest.mark.parametrize("remedy", [0.1, "oas", "ledoit-wolf"])
@pytest.mark.parametrize("covariance_type", ["full", "diag"])
@pytest.mark.parametrize("rows", SINGULAR, ids=["few rows", "constant", "twice"])
def test_shrinkage_is_the_remedy(rows, covariance_type, remedy):
    density = GaussianDensity(covariance_type, remedy).fit(rows)
    assert np.isfinite(density.score_samples(rows)).all()


@pytest.mark.parametrize("covariance_type", ["full", "diag", "tied", "shared-basis"])
def test_shrinkage_is_the_remedy_of_classes_too(covariance_type):
    rows, labels = np.r_[np.insert(X, 1, 0.1, axis=1), np.ones((5, 5))], np.append(Y, [3] * 5)
    density = GDADensity(covariance_type).fit(rows, labels)
    assert np.isfinite(density.score_samples(rows)).all()
