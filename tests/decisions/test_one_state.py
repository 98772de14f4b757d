"""An answer is that of one state of a model, if it is calibrated while the answer is computed."""

from functools import partial
from threading import Thread

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from dipedl import DIPClassifier
from dipedl.baselines import DDU, MaxSoftmax
from dipedl.density import GDADensity
from weekly import sample_of

METHODS = {
    "predict": lambda model, X: model.predict(X),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "classifier_proba": lambda model, X: model.classifier_proba(X),
    "dirichlet": lambda model, X: model.predict_dirichlet(X).concentration,
    "score": lambda model, X: model.score_samples(X),
    "ood": lambda model, X: model.predict_ood(X),
    "alpha": lambda model, X: model.predict_ood(X, alpha=0.3),
    "p": lambda model, X: model.p_value(X),
    "set": lambda model, X: model.predict_set(X, coverage=0.7),
    "reject": lambda model, X: model.predict_with_reject(X, coverage=0.5).accepted,
    "risk": lambda model, X: model.predict_with_reject(X, risk=0.4).threshold,
    "uncertainty": lambda model, X: model.uncertainty(X),
    "answers": lambda model, X: model.answers(X).p_values,
    "explain": lambda model, X: [card.p_value for card in model.explain(X)],
}


def rows(n, seed, spread=1.0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return (spread * rng.normal(size=(n, 4)) + 1.5 * np.eye(4)[y]), y


X, Y = rows(300, 0)
BEFORE, AFTER, NEW = rows(150, 1), rows(90, 2, 2.0), rows(20, 3, 1.5)[0]


class Interrupted:
    """Calls what another thread would, once, while a classifier is asked."""

    act = None

    def predict_proba(self, X):
        act, Interrupted.act = Interrupted.act, None
        if act is not None:
            thread = Thread(target=act)
            thread.start()
            thread.join()
        return super().predict_proba(X)


class Linear(Interrupted, LogisticRegression):
    pass


class Bayes(Interrupted, GaussianNB):
    pass


def calibrated(make):
    def state(rows=BEFORE):
        return make().fit(X, Y).calibrate(*rows)

    return state, lambda model: model.calibrate(*AFTER)


def streamed():
    model = DIPClassifier(Bayes(), GDADensity(), random_state=0)
    return model.partial_fit(X, Y, classes=[0, 1, 2])


MODELS = {
    "DIPClassifier": calibrated(lambda: DIPClassifier(Linear(), GDADensity(), random_state=0)),
    "default": calibrated(lambda: DIPClassifier(Linear(), random_state=0)),
    "MaxSoftmax": calibrated(lambda: MaxSoftmax(Linear())),
    "DDU": calibrated(lambda: DDU(Linear(), features="passthrough")),
    "partial_fit": (streamed, lambda model: model.partial_fit(*AFTER)),
    "calibrated stream": (streamed, lambda model: model.calibrate(*AFTER)),
}


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", sample_of(MODELS, "DIPClassifier", "DDU", "partial_fit"))
def test_an_answer_reads_one_state(name):
    make, change = MODELS[name]
    first = make()
    methods = [m for m in METHODS if m not in ("dirichlet", "score", "answers", "classifier_proba")]
    methods = list(METHODS) if hasattr(first, "answers") else methods
    if name == "default":  # the same methods of other densities
        methods = ["predict_proba", "answers", "explain"]
    wanted = {m: METHODS[m](first, NEW) for m in methods}
    change(first)
    later = {m: METHODS[m](first, NEW) for m in methods}
    model = make() if name != "default" else first.calibrate(*BEFORE)
    for m in methods:
        # A stream learns from its held-out rows when it is asked first.
        METHODS[m](model, NEW)
        Interrupted.act = partial(change, model)
        np.testing.assert_array_equal(METHODS[m](model, NEW), wanted[m], err_msg=m)
        if Interrupted.act is not None:
            # This method asks no classifier.
            change(model)
            Interrupted.act = None
        np.testing.assert_array_equal(METHODS[m](model, NEW), later[m], err_msg=m)
        model = make() if "stream" in name or name == "partial_fit" else model.calibrate(*BEFORE)
