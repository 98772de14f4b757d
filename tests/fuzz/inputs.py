"""Hostile inputs to fitted models and to fits: an answer that keeps its promises, or an error."""

from __future__ import annotations

import warnings
from collections import Counter
from copy import deepcopy
from functools import cache

import numpy as np
import pandas as pd
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier, OODDetector, baselines
from dipedl.density import GaussianDensity, GDADensity, KernelDensity, KNNDensity

X, Y = load_iris(return_X_y=True)
X, Y = X[::2], Y[::2]
EXPECTED = (ValueError, TypeError)
FLOAT = np.finfo(float)
SPECIAL = [np.nan, np.inf, -np.inf, FLOAT.max, -FLOAT.max, FLOAT.tiny, 5e-324, 1e39, -3.5e38, 0.0]


@cache
def models():
    """Fitted models, by name."""
    forest = RandomForestClassifier(5, random_state=0)
    made = {
        "linear": DIPClassifier(LogisticRegression(max_iter=500), GDADensity()),
        "bayes": DIPClassifier(GaussianNB(), KNNDensity(5), features="passthrough"),
        "forest": DIPClassifier(forest, KernelDensity()),
        "scaled": DIPClassifier(make_pipeline(StandardScaler(), forest), GaussianDensity()),
        "boosting": DIPClassifier(HistGradientBoostingClassifier(max_iter=5), GDADensity("diag")),
        "default": DIPClassifier(random_state=0),
        "detector": OODDetector(DIPClassifier(density=GDADensity())),
        "baseline": baselines.KNNDistance(n_neighbors=5),
        "density": GDADensity(),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: model.fit(X, Y) for name, model in made.items()}


def rows(rng):
    """Some rows, a few entries of which are special or of any size."""
    found = X[rng.integers(0, len(X), rng.integers(1, 6))].copy()
    for _ in range(rng.integers(0, 4)):
        place = rng.integers(0, len(found)), rng.integers(0, 4)
        size = rng.choice([-1, 1]) * 10.0 ** rng.uniform(-320, 308)
        found[place] = size if rng.random() < 0.5 else rng.choice(SPECIAL)
    return found


def disguised(rng, found):
    """The rows in another form, right or wrong."""
    forms = [
        lambda: found,
        lambda: found.tolist(),
        lambda: found.astype(object),
        lambda: np.asfortranarray(found),
        lambda: found.astype(rng.choice(["f2", "f4", "g", "c16", "i8", "U8", "S8", "M8[s]", "?"])),
        lambda: pd.DataFrame(found, columns=list("abcd")),
        lambda: pd.DataFrame(found, columns=list("aabb")),
        lambda: sparse.csr_array(found),
        lambda: np.ma.array(found, mask=rng.random(found.shape) < 0.1),
        lambda: list(np.ma.array(found, mask=rng.random(found.shape) < 0.1)),
        lambda: found[:, : rng.integers(0, 4)],
        lambda: np.column_stack([found, found]),
        lambda: found[0],
        lambda: found[:0],
        lambda: found[None],
        lambda: [[1.0, 2.0], [3.0]],
        lambda: rng.choice([None, 3.0, "text"]),
        lambda: np.array([[None, "a", 1, {}]], dtype=object),
    ]
    form = 0 if rng.random() < 0.5 else rng.integers(0, len(forms))
    return forms[form]()


def answer(model, X, rng):
    """Return what one method gives, and whether it keeps its promises."""
    if isinstance(model, DIPClassifier):
        return ask_classifier(model, X, rng.integers(0, 6))
    name = rng.choice([n for n in ("predict", "score_samples", "uncertainty") if hasattr(model, n)])
    found = getattr(model, name)(X)
    return found, not (found.dtype.kind == "f" and np.isnan(found).any())


def ask_classifier(clf, X, question):
    """One of six questions, and what every answer to it must be."""
    if question == 0:
        P = clf.predict_proba(X)
        return P, bool((P >= 0).all() and np.allclose(P.sum(axis=1), 1, atol=1e-9))
    if question == 1:
        u = clf.uncertainty(X)
        return u, bool(((u > 0) & (u <= 1)).all())
    if question == 2:
        p = clf.p_value(X)
        return p, bool(((p > 0) & (p <= 1)).all())
    if question == 3:
        flags = clf.predict_ood(X)
        return flags, bool(np.isin(flags, [-1, 1]).all())
    if question == 4:
        labels = clf.predict(X)
        return labels, bool(np.isin(labels, clf.classes_).all())
    scores = clf.score_samples(X)
    return scores, not (np.isnan(scores) | (scores == np.inf)).any()


def asked(rng, counts):
    """One question with hostile rows; each row is answered as it is alone."""
    name = rng.choice(sorted(models()))
    model, given = models()[name], disguised(rng, rows(rng))
    state = rng.bit_generator.state
    try:
        found, kept = answer(model, given, rng)
    except EXPECTED as error:
        counts["questions refused"] += 1
        plain = type(given) is np.ndarray and given.dtype == float and given.shape[1:] == (4,)
        if (
            plain
            and len(given)
            and np.isfinite(given).all()
            and name not in ("baseline", "density")
        ):
            raise AssertionError(f"{name} refused {given!r}: {error}") from error
        return
    if not kept or len(found) != np.shape(given)[0]:
        raise AssertionError(f"{name} gave {found} for {given!r}")
    i = int(rng.integers(0, len(found)))
    alone = np.random.default_rng()
    alone.bit_generator.state = state
    one = given[i : i + 1]
    if not np.allclose(answer(model, one, alone)[0], found[i : i + 1], rtol=1e-7, equal_nan=True):
        raise AssertionError(f"{name}: row {i} of {given!r} is answered otherwise alone")
    counts["questions answered"] += 1


def refitted(rng, counts):
    """A fit with hostile rows, labels or weights: the old fit survives a failure."""
    name = rng.choice(["linear", "detector", "baseline", "density"])
    model = deepcopy(models()[name])
    before = {key: id(value) for key, value in vars(model).items()}
    bad, labels = X.copy(), Y.copy()
    for _ in range(rng.integers(0, 3)):
        place = rng.integers(0, len(bad)), rng.integers(0, 4)
        bad[place] = rng.choice([*SPECIAL, 10.0 ** rng.uniform(30, 308)])
    if rng.random() < 0.3:
        labels = [labels[:-1], labels * 0, labels + 0.5][rng.integers(0, 3)]
    weights = {}
    if name == "linear" and rng.random() < 0.3:
        w = np.ones(len(bad))
        w[rng.integers(0, len(w))] = rng.choice([*SPECIAL, -1.0, 10.0 ** rng.uniform(0, 308)])
        weights = {"sample_weight": w}
    try:
        model.fit(disguised(rng, bad), labels, **weights)
    except EXPECTED:
        counts["fits refused"] += 1
        if {key: id(value) for key, value in vars(model).items()} != before:
            raise AssertionError(f"a failed fit of {name} changed it") from None
        return
    counts["fits done"] += 1


def run(seed: int, tries: int) -> Counter[str]:
    """Questions, and one fit in twenty tries."""
    rng, counts = np.random.default_rng(seed), Counter()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for i in range(tries):
            try:
                (refitted if i % 20 == 19 else asked)(rng, counts)
            except Exception as error:
                counts[f"fault: {type(error).__name__}: {str(error)[:300]}"] += 1
    return counts
