"""Classifier, module and every baseline answer the same questions in the same way."""

import inspect
import json
import pickle
import warnings
from copy import copy, deepcopy
from functools import cache
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

from dipedl import DIPClassifier, Dirichlet, baselines
from dipedl.answers import Answers
from dipedl.decisions import (
    RejectCurve,
    Rejection,
    conformal_p_values,
    prediction_sets,
    reject_curve,
    unknown_probability,
)
from dipedl.density import GDADensity
from dipedl.evidence import ZScore
from dipedl.explanation import FindingWarning
from few_row_settings import few_row_settings

torch = pytest.importorskip("torch")

import dipedl  # noqa: E402
from dipedl.baselines import DDU, MaxSoftmax  # noqa: E402
from dipedl.networks import MLP, Training  # noqa: E402
from dipedl.pretrained import DIPModule  # noqa: E402

CLASSES = np.array(["ash", "birch", "cedar"])
CENTRES = np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])
HELD, NEW = 300, 400
#: A correct method fails a check by chance less often than this.
CHANCE = 1e-4


def draw(seed, n):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return CENTRES[y] + rng.normal(size=(n, 2)), CLASSES[y]


class Module:
    """A `DIPModule` asked with arrays: it takes batches of tensors and class indices."""

    def __init__(self, score):
        self.score = score

    def fit(self, X, y):
        rule = LogisticRegression().fit(X, y)
        network = torch.nn.Linear(2, 3)
        network.weight.data = torch.tensor(rule.coef_).float()
        network.bias.data = torch.tensor(rule.intercept_).float()
        module = DIPModule(network.eval(), score=self.score, classes=CLASSES.tolist())
        self.inner = module.fit_density([(tensor(X), indices(y))])
        return self

    def calibrate(self, X, y):
        self.inner.calibrate([(tensor(X), indices(y))])
        return self

    def predict(self, X):
        return CLASSES[self.inner(tensor(X)).concentration.argmax(dim=1).numpy()]

    def __getattr__(self, name):
        if name.startswith("__") or "inner" not in vars(self):
            raise AttributeError(name)
        found = getattr(self.inner, name)
        if name not in QUESTIONS:
            return found
        return lambda X, *args, **kwargs: plain(found(tensor(X), *args, **kwargs))


QUESTIONS = ("p_value", "predict_ood", "predict_set", "predict_with_reject", "decide", "explain")


def tensor(X):
    return torch.tensor(X, dtype=torch.float32)


def indices(y):
    return torch.tensor(np.searchsorted(CLASSES, y))


def plain(found):
    return found.numpy() if isinstance(found, torch.Tensor) else found


def baseline(name):
    cls = getattr(baselines, name)
    names = inspect.signature(cls).parameters
    training = Training(epochs=5, batch_size=75, learning_rate=0.02, n_jobs=1)
    network = {"backbone": MLP((16,), dropout=0.2 if name == "MCDropout" else 0.0)}
    if "training" in names:
        own = {"density": GDADensity()} if name == "DAEDL" else {}
        return cls(**network, training=training, **own)
    if name == "CEDL":
        return cls(baseline("EDL"))
    return cls(**few_row_settings(name))


MAKERS = {
    "DIPClassifier": lambda: DIPClassifier(LogisticRegression(), GDADensity()),
    "DIPModule": lambda: Module("fused"),
    "DIPModule-density": lambda: Module("density"),
    **{name: lambda name=name: baseline(name) for name in baselines.__all__},
}
EVIDENTIAL = [name for name in MAKERS if name.startswith("DIP")]
#: One of each kind: all baselines inherit their decisions, and differ by score and probabilities.
KINDS = [*EVIDENTIAL, "MaxSoftmax", "KNNDistance", "DDU", "EDL", "DeepEnsemble", "CEDL"]


@pytest.fixture(scope="module")
def fitted():
    """Each method, fitted once."""
    made = {}

    def get(name):
        if name not in made:
            made[name] = MAKERS[name]().fit(*draw(0, 300))
        return made[name]

    return get


@pytest.fixture(scope="module")
def calibrated(fitted):
    """Each method after its held-out rows; tests get copies."""
    return cache(lambda name: deepcopy(fitted(name)).calibrate(*draw(1, HELD)))


@pytest.fixture(params=KINDS)
def model(request, calibrated):
    return deepcopy(calibrated(request.param))


@pytest.mark.parametrize("name", MAKERS)
def test_every_method_decides_by_its_held_out_rows(name, fitted):
    model, (X, y) = fitted(name).calibrate(*draw(1, HELD)), draw(2, NEW)
    p, sets = model.p_value(X), model.predict_set(X, coverage=0.8)
    assert within_chance((model.p_value(X, random_state=0) <= 0.2).sum(), 0.2)
    np.testing.assert_array_equal(model.predict_ood(X, alpha=0.3) == -1, p <= 0.3)
    rank = int(np.ceil(0.8 * (HELD + 1)))
    covered = sets[np.arange(NEW), np.searchsorted(CLASSES, y)].sum()
    assert covered >= stats.betabinom(NEW, rank, HELD + 1 - rank).ppf(CHANCE)


def within_chance(hits, level):
    """Return whether HELD exchangeable rows at this level allow so many of `NEW` inputs."""
    rank = int(np.floor(level * (HELD + 1)))
    law = stats.betabinom(NEW, rank, HELD + 1 - rank)
    return law.ppf(CHANCE) <= hits <= law.ppf(1 - CHANCE)


def test_p_values_are_ranks_among_the_held_out_rows_and_alarms_are_small_ones(model):
    X, _ = draw(2, NEW)
    p = model.p_value(X)
    held = model.held_out_rows()
    assert p.shape == (NEW,) and p.dtype == np.float64 and len(held) == HELD
    ranks = np.rint(p * (HELD + 1))
    np.testing.assert_allclose(p * (HELD + 1), ranks, atol=1e-9)
    assert ranks.min() >= 1 and ranks.max() <= HELD + 1
    for alpha in (0.01, 0.05, 0.3):
        np.testing.assert_array_equal(model.predict_ood(X, alpha=alpha) == -1, p <= alpha)
    np.testing.assert_array_equal(model.predict_ood(X) == -1, p <= model.false_alarm_rate)
    np.testing.assert_array_equal(model.p_value(X, 5), model.p_value(X, 5))
    assert (model.p_value(X, 5) <= p).all()


def test_the_stated_share_of_new_id_inputs_is_flagged(model):
    X, _ = draw(3, NEW)
    p = model.p_value(X, random_state=0)
    for level in (0.05, 0.2, 0.5):
        assert within_chance((p <= level).sum(), level)


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_sets_cover_the_true_class_as_stated(model, method):
    X, y = draw(4, NEW)
    sets = model.predict_set(X, coverage=0.8, method=method)
    assert sets.shape == (NEW, 3) and sets.dtype == bool
    covered = sets[np.arange(NEW), np.searchsorted(CLASSES, y)].sum()
    # never too few; too many where the most probable class alone covers more
    rank = int(np.ceil(0.8 * (HELD + 1)))
    assert covered >= stats.betabinom(NEW, rank, HELD + 1 - rank).ppf(CHANCE)
    one_by_one = [model.predict_set(X[i : i + 1], 0.8, method) for i in range(20)]
    assert (np.vstack(one_by_one) == sets[:20]).mean() > 0.95  # last digits may move a tie


def test_by_class_thresholds_hold_within_each_class(model):
    X, y = draw(4, NEW)
    sets, codes = model.predict_set(X, coverage=0.8, by_class=True), np.searchsorted(CLASSES, y)
    held = model.held_out_rows()
    for c, n in enumerate(np.bincount(held.labels)):
        covered, new = sets[codes == c, c].sum(), (codes == c).sum()
        rank = int(np.ceil(0.8 * (n + 1)))
        assert covered >= stats.betabinom(new, rank, n + 1 - rank).ppf(CHANCE)
        flagged = (model.predict_ood(X[codes == c], alpha=0.1, by_class=True) == -1).sum()
        rank = int(np.floor(0.1 * (n + 1)))
        assert flagged <= stats.betabinom(new, rank, n + 1 - rank).ppf(1 - CHANCE)
    p = model.p_value(X, by_class=True)
    np.testing.assert_array_equal(model.predict_ood(X, alpha=0.1, by_class=True) == -1, p <= 0.1)
    assert (p >= model.p_value(X) * (1 - 1e-9)).mean() > 0.5


def test_a_class_of_too_few_held_out_rows_is_named(fitted):
    (X, y), new = draw(1, HELD), draw(2, 50)[0]
    kept = (y != "cedar") | (np.cumsum(y == "cedar") <= 5)
    model = deepcopy(fitted("DIPClassifier")).calibrate(X[kept], y[kept])
    with pytest.warns(UserWarning, match=r"coverage=0.9 needs at least 9 .*'cedar' has 5: every"):
        assert model.predict_set(new, by_class=True)[:, 2].all()
    with pytest.warns(UserWarning, match=r"rate of 0.05 by class needs .* 19 .*'cedar' has 5: not"):
        assert (model.predict_ood(new - 50, by_class=True) == 1).all()
    model.calibrate(X[y != "cedar"], y[y != "cedar"])
    with pytest.warns(
        UserWarning, match=r"p-value by class needs at least 1 .*'cedar' has 0: every"
    ):
        assert (model.p_value(new, by_class=True) == 1).all()
    peer = deepcopy(fitted("MaxSoftmax")).calibrate(X)
    with pytest.raises(ValueError, match="predict_ood by class needs held-out inputs with labels"):
        peer.predict_ood(new, by_class=True)


def test_rejection_keeps_a_share_or_a_risk(model):
    X, y = draw(5, NEW)
    answer = model.predict_with_reject(X, coverage=0.7, kind="max_prob")
    assert isinstance(answer, Rejection) and np.isin(answer.labels, CLASSES).all()
    assert within_chance(answer.accepted.sum(), 0.7)
    assert (answer.labels == model.predict(X)).mean() > 0.99  # exact ties aside
    curve = model.reject_curve()
    assert isinstance(curve, RejectCurve) and (curve.risk <= curve.upper).all()
    trusted = model.predict_with_reject(X, risk=float(curve.upper.min()) * 1.01)
    assert (trusted.coverage, trusted.confidence) == (None, 0.9)
    wrong = (trusted.labels != y)[trusted.accepted]
    assert trusted.accepted.any() and wrong.mean() <= trusted.risk + 3 * np.sqrt(
        trusted.risk / len(wrong)
    )
    assert set(trusted.fill("?")[trusted.rejected]) <= {"?"}


COSTS = np.array([[0.0, 5.0, 1.0], [20.0, 0.0, 4.0], [3.0, 2.0, 0.0]])


def test_decisions_cost_least_and_their_cost_is_that_of_new_rows(model):
    X, y = draw(5, NEW)
    decision = model.decide(X, costs=COSTS, cost_reject=1.5, cost_unknown=20, alpha=0.1)
    if hasattr(model, "classifier_proba"):
        P = model.classifier_proba(X)
    elif isinstance(model, Module):
        _, bare, _ = model.inner.predict_parts(tensor(X))
        P = model.inner.evidence_.calibrate_in_full(bare)
    else:
        P = model.predict_proba(X)
    risks = np.array([[sum(p[i] * COSTS[i, j] for i in range(3)) for j in range(3)] for p in P])
    flagged = model.predict_ood(X, alpha=0.1) == -1
    np.testing.assert_array_equal(decision.flagged, flagged)
    np.testing.assert_array_equal(decision.accepted, (risks.min(axis=1) <= 1.5) & ~flagged)
    assert (decision.labels == CLASSES[risks.argmin(axis=1)]).mean() > 0.99
    expected = np.where(decision.accepted, risks.min(axis=1), 1.5)
    np.testing.assert_allclose(decision.costs, expected, rtol=1e-5)
    truth, answers = np.searchsorted(CLASSES, y), np.searchsorted(CLASSES, decision.labels)
    paid = np.where(decision.accepted, COSTS[truth, answers], 1.5)
    sd = paid.std() * np.sqrt(1 / NEW + 1 / HELD)
    assert abs(decision.held_out_cost - paid.mean()) < 4 * sd
    of_held_out = model.held_out_decision(costs=COSTS, cost_reject=1.5, cost_unknown=20, alpha=0.1)
    assert of_held_out.held_out_cost == decision.held_out_cost
    assert of_held_out.accepted.mean() == pytest.approx(decision.held_out_accepted)
    mixed = decision.expected_cost(unknown=0.1, caught=0.75)
    assert mixed == pytest.approx(0.9 * decision.held_out_cost + 0.1 * (0.75 * 1.5 + 0.25 * 20))
    # Where an unknown input costs no more than a look, nothing is gained by the flag.
    cheap = model.decide(X, cost_error=5, cost_reject=1, cost_unknown=1)
    np.testing.assert_array_equal(cheap.accepted, 5 * (1 - P.max(axis=1)) <= 1 + 1e-12)


def test_a_share_of_unknown_inputs_makes_unusual_ones_dearer(model):
    """The probability of an unknown input is Bayes' rule with a power law of the p-value."""
    X, _ = draw(5, 300)
    options = {"cost_error": 5, "cost_reject": 1, "cost_unknown": 8}
    plain = model.decide(X, **options)
    assert not plain.unknown_probability.any()
    decision = model.decide(X, **options, unknown=0.1, caught=0.4, alpha=0.1)
    p = np.asarray(model.p_value(X))
    law = stats.beta(np.log(0.4) / np.log(0.1), 1)
    assert law.cdf(0.1) == pytest.approx(0.4)
    q = 0.1 * law.pdf(p) / (0.1 * law.pdf(p) + 0.9)
    np.testing.assert_allclose(decision.unknown_probability, q, rtol=1e-9)
    # Costs of `plain` where it answers are those of a known input.
    sure = plain.accepted & ~decision.flagged
    expected = (1 - q[sure]) * plain.costs[sure] + 8 * q[sure]
    np.testing.assert_array_equal(decision.accepted[sure], expected <= 1)
    np.testing.assert_allclose(decision.costs[sure], np.minimum(expected, 1), rtol=1e-9)
    assert decision.held_out_accepted < plain.held_out_accepted


def test_a_rehearsal_says_what_share_of_the_unknown_is_caught(fitted):
    model = fitted("DIPClassifier").calibrate(*draw(1, HELD))
    X, options = draw(5, 50)[0], {"cost_error": 5, "cost_reject": 1, "unknown": 0.2}
    half = model.decide(X, **options).unknown_probability
    np.testing.assert_array_equal(half, model.decide(X, **options, caught=0.5).unknown_probability)
    rehearsed = copy(model)
    rehearsed.unknown_rehearsal_ = SimpleNamespace(mean=[0.8], false_alarm_rate=0.05)
    found = rehearsed.decide(X, **options, alpha=0.1).unknown_probability
    p = model.p_value(X)
    np.testing.assert_array_equal(found, unknown_probability(p, 0.2, 0.8, 0.05))
    # A flag that is no better than chance tells nothing, a perfect one all that is not flagged.
    assert (unknown_probability(p, 0.2, 0.01) == 0.2).all()
    perfect = unknown_probability(p, 0.2, 1.0)
    assert (perfect[p > 0.05] == 0).all() and (perfect[p <= 0.05] > 0.2).all()


def test_copies_decide_alike(model):
    X, _ = draw(6, 50)
    inner = model.inner if isinstance(model, Module) else model
    for copied in (deepcopy(inner), pickle.loads(pickle.dumps(inner))):
        twin = copy(model)
        if isinstance(model, Module):
            twin.inner = copied
        else:
            twin = copied
        np.testing.assert_array_equal(twin.p_value(X), model.p_value(X))
        np.testing.assert_array_equal(twin.predict_set(X), model.predict_set(X))
        np.testing.assert_array_equal(twin.reject_curve().upper, model.reject_curve().upper)


BAD_REQUESTS = [
    (lambda m, X: m.predict_set(X, 1.5), "coverage must be strictly between 0 and 1"),
    (lambda m, X: m.predict_set(X, method="raps"), "method must be one of"),
    (lambda m, X: m.predict_ood(X, alpha=0), "alpha must be strictly between 0 and 1"),
    (lambda m, X: m.predict_with_reject(X), "exactly one of risk and coverage"),
    (lambda m, X: m.predict_with_reject(X, risk=0.1, coverage=0.9), "exactly one of risk and"),
    (lambda m, X: m.predict_with_reject(X, risk=1.0), "risk must be strictly between 0 and 1"),
    (lambda m, X: m.predict_with_reject(X, risk=0.1, confidence=1.0), "confidence must be"),
    (lambda m, X: m.predict_with_reject(X, coverage=0.5, kind="luck"), "kind must be one of"),
    (lambda m, X: m.reject_curve("luck"), "kind must be one of"),
    (lambda m, X: m.decide(X, cost_reject=1), "exactly one of cost_error and costs"),
    (
        lambda m, X: m.decide(X, cost_reject=1, cost_error=5, costs=COSTS),
        "exactly one of cost_error and costs",
    ),
    (lambda m, X: m.decide(X, cost_error=-5, cost_reject=1), "cost_error must be .*got -5"),
    (lambda m, X: m.decide(X, cost_error=5, cost_reject=np.nan), "cost_reject must be .*nan"),
    (
        lambda m, X: m.decide(X, cost_error=5, cost_reject=1, cost_unknown=-1.0),
        "cost_unknown must be .*got -1",
    ),
    (
        lambda m, X: m.decide(X, cost_error=5, cost_reject=1, unknown=1),
        r"unknown must be finite and in \[0, 1\), got 1",
    ),
    (
        lambda m, X: m.decide(X, cost_error=5, cost_reject=1, unknown=0.1, caught=-0.1),
        r"caught must be finite and in \[0, 1\], got -0.1",
    ),
    (
        lambda m, X: m.decide(X, costs=COSTS[:2], cost_reject=1),
        r"costs must have shape \(3, 3\).*got shape \(2, 3\)",
    ),
    (
        lambda m, X: m.decide(X, costs=-COSTS, cost_reject=1),
        "costs must be finite and >= 0, got -5.0 in row 0, column 1",
    ),
    (
        lambda m, X: m.decide(X, costs=np.where(COSTS == 4, np.nan, COSTS), cost_reject=1),
        "costs must be finite and >= 0, got nan in row 1, column 2",
    ),
]


@pytest.mark.parametrize("name", [*EVIDENTIAL, "KNNDistance", "EDL"])
def test_bad_requests(name, fitted):
    model, X = fitted(name).calibrate(*draw(1, HELD)), draw(7, 5)[0]
    for ask, message in BAD_REQUESTS:
        with pytest.raises(ValueError, match=message):
            ask(model, X)


@pytest.mark.parametrize("name", MAKERS)
def test_before_the_fit_every_question_is_refused(name):
    made, X = MAKERS[name](), draw(8, 5)[0]
    if isinstance(made, Module):
        made, X = DIPModule(torch.nn.Linear(2, 3).eval(), score=made.score), tensor(X)
    for question in ("p_value", "predict_ood", "predict_set"):
        with pytest.raises(NotFittedError):
            getattr(made, question)(X)
    for ask in (
        *(made.diagnose, made.reject_curve),
        *(lambda: made.explain(X), lambda: made.predict_with_reject(X, coverage=0.9)),
    ):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize("name", ["MaxSoftmax", "KNNDistance", "EDL", "DeepEnsemble"])
def test_a_baseline_says_how_it_gets_thresholds_and_forgets_them_with_a_fit(name, fitted):
    model = deepcopy(fitted(name)).calibrate(*draw(1, 60))
    X = draw(9, 5)[0]
    assert model.p_value(X).shape == (5,)
    model.fit(*draw(0, 60))
    for ask in (model.p_value, model.predict_ood, model.predict_set, model.explain):
        with pytest.raises(NotFittedError, match=rf"{name} has no held-out rows.*calibrate\(X, y"):
            ask(X)


def test_decisions_are_those_of_the_free_functions(fitted):
    model = fitted("KNNDistance").calibrate(*draw(1, HELD))
    (X, _), (own, labels) = draw(2, 50), draw(1, HELD)
    np.testing.assert_array_equal(
        model.p_value(X), conformal_p_values(-model.uncertainty(X), -model.uncertainty(own))
    )
    expected = prediction_sets(
        model.predict_proba(X), model.predict_proba(own), np.searchsorted(CLASSES, labels)
    )
    np.testing.assert_array_equal(model.predict_set(X), expected)
    wrong = model.predict(own) != labels
    curve = reject_curve(model.uncertainty(own), wrong)
    np.testing.assert_allclose(model.reject_curve().risk, curve.risk, rtol=1e-12)
    np.testing.assert_allclose(model.reject_curve().upper, curve.upper, rtol=1e-12)


@pytest.mark.parametrize("name", ["DIPClassifier", "DDU"])
def test_a_weight_counts_a_held_out_row_that_often(fitted, name):
    model, (X, y), new = deepcopy(fitted(name)), draw(1, 60), draw(2, 40)[0]
    w = np.random.default_rng(0).integers(0, 4, 60)
    model.calibrate(X, y, w)
    p, sets = model.p_value(new), model.predict_set(new, coverage=0.7)
    model.calibrate(np.repeat(X, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(p, model.p_value(new), rtol=1e-12)
    np.testing.assert_array_equal(sets, model.predict_set(new, coverage=0.7))


def test_without_labels_a_baseline_has_p_values_and_names_what_sets_need(fitted):
    model, (X, y) = deepcopy(fitted("MaxSoftmax")), draw(1, 60)
    assert (model.calibrate(X).p_value(X) > 0).all()
    with pytest.raises(ValueError, match=r"predict_set needs held-out.*no labels.*calibrate"):
        model.predict_set(X)
    with pytest.raises(ValueError, match=r"holds labels .* that fit does not know"):
        model.calibrate(X, np.where(y == "ash", "oak", y))


@pytest.mark.parametrize("name", EVIDENTIAL)
def test_what_has_evidence_reports_on_itself_and_explains_inputs(name, fitted):
    model = fitted(name).calibrate(*draw(1, HELD))
    X = np.vstack([draw(2, 3)[0], [[12.0, 0.0]]])
    diagnosis = model.diagnose()
    assert diagnosis.source == f"{HELD} held-out inputs" and "calibration_source" in diagnosis.codes
    cards = model.explain(X, top=1)
    np.testing.assert_array_equal([card.p_value for card in cards], model.p_value(X))
    labels = model.predict_with_reject(X, coverage=0.5).labels
    assert [card.label for card in cards] == labels.tolist()
    far = cards[-1]
    assert far.flagged and far.vacuity > 0.99 and "flagged as OOD" in str(far)
    reading = far.parts[0]
    first = reading["features"][0]
    # a feature of a network has a number, an input of a classifier is a column
    assert first.get("column", first.get("feature")) == 0
    assert reading["kind"] == "gaussian" and reading["class"] == "birch"


#: What a card of a baseline has to say beside the score.
REASONS = {
    **dict.fromkeys(baselines.__all__, None),
    "DDU": "gaussian",
    "Mahalanobis": "gaussian",
    "RelativeMahalanobis": "gaussian",
    "DAEDL": "gaussian",
    "KNNDistance": "neighbours",
}


@pytest.mark.parametrize("name", baselines.__all__)
def test_a_baseline_reports_on_itself_and_explains_inputs(name, fitted):
    model, X = fitted(name).calibrate(*draw(1, HELD)), draw(2, 8)[0]
    diagnosis = model.diagnose()
    assert diagnosis.source == f"{HELD} held-out inputs"
    assert {"calibration_source", "calibration_size", "labels"} <= set(diagnosis.codes)
    assert {"classes", "class_nearly_lost", "class_never_predicted"} & set(diagnosis.codes)
    cards, p = model.explain(X, top=1), model.p_value(X)
    np.testing.assert_array_equal([card.p_value for card in cards], p)
    np.testing.assert_array_equal([card.uncertainty for card in cards], model.uncertainty(X))
    np.testing.assert_array_equal([card.proba for card in cards], model.predict_proba(X))
    assert [card.label for card in cards] == model.predict(X).tolist()
    assert all(
        (card.dirichlet is not None) == hasattr(model, "predict_dirichlet") for card in cards
    )
    card = cards[int(p.argmin())]
    kinds, said = [part["kind"] for part in card.parts], str(card)
    assert kinds == ([] if REASONS[name] is None else [REASONS[name]])
    assert ("no density: reasons by column are not available" in said) == (not kinds)
    assert name in said and json.loads(json.dumps(card.to_dict()))["method"] == name
    with pytest.raises(ValueError, match="top must be an integer >= 1"):
        model.explain(X, top=0)


@pytest.mark.parametrize("name", ["DDU", "KNNDistance"])
def test_reasons_of_a_baseline_are_told_by_column(name, fitted):
    model = fitted(name).calibrate(*draw(1, HELD))
    far = np.array([[0.0, 12.0]])
    (part,) = model.explain(far, top=2)[0].parts
    if name == "DDU":
        assert (part["class"], part["features"][0]["column"]) == ("cedar", 1)
        assert part["squared_distance"] == pytest.approx(
            sum(entry["contribution"] for entry in part["features"]), rel=1e-9
        )
    else:
        assert part["kth_distance"] == model.uncertainty(far)[0]
        unit = lambda Z: Z / np.linalg.norm(Z, axis=1, keepdims=True)  # noqa: E731
        distances = np.linalg.norm(unit(draw(0, 300)[0]) - unit(far), axis=1)
        assert part["neighbours"][0]["row"] == distances.argmin()


def test_a_pipeline_is_looked_through_to_a_baseline():
    X, y = draw(0, 300)
    model = make_pipeline(StandardScaler(), DDU()).fit(X, y)
    model[-1].calibrate(model[:-1].transform(draw(1, 60)[0]), draw(1, 60)[1])
    card = dipedl.explain(model, [[0.0, 12.0]])[0]
    entry = card.parts[0]["features"][0]
    assert (entry["column"], entry["value"]) == (1, 12.0)
    assert dipedl.diagnose(model).source == "60 held-out inputs"
    for ask in (dipedl.explain, lambda *given: dipedl.diagnose(given[0])):
        with pytest.raises(
            TypeError, match=r"model must be .* a baseline.* got LogisticRegression"
        ):
            ask(LogisticRegression().fit(X, y), X)


def test_a_score_of_one_value_is_found():
    X, y = draw(0, 300)
    certain = MaxSoftmax(DecisionTreeClassifier(random_state=0)).fit(X, y).calibrate(*draw(1, 300))
    finding = {f.code: f for f in certain.diagnose().findings}["score_constant"]
    assert finding.numbers["share_tied"] == 1
    over = {f.code: f for f in certain.diagnose().findings}["classifier_overconfident"]
    assert "DIPClassifier(FrozenEstimator(MaxSoftmax(...)))" in over.remedy


FAR = np.full((1, 2), 60.0)


def hits(clf, X, y, **options):
    sets = clf.predict_set(X, **options)
    return sets[np.arange(len(y)), np.searchsorted(clf.classes_, y)]


def fit(rng, n=300):
    return DIPClassifier(LogisticRegression(), GDADensity()).fit(*draw(rng, n))


@pytest.fixture(scope="module")
def clf():
    rng = np.random.default_rng(1)
    return fit(rng).calibrate(*draw(rng, 400))


def test_answers_hold_sets_and_reasons_and_can_be_cut_and_joined(clf):
    X = np.vstack([draw(np.random.default_rng(3), 5)[0], FAR])
    found = clf.answers(X, coverage=0.8, reasons="flagged")
    for answer, expected in (
        (found.labels, clf.predict(X)),
        (found.dirichlet.concentration, clf.predict_dirichlet(X).concentration),
        (found.p_values, clf.p_value(X)),
        (found.flagged, clf.predict_ood(X) == -1),
        (found.sets, clf.predict_set(X, 0.8)),
    ):
        np.testing.assert_array_equal(answer, expected)
    assert ((found.reasons != "") == found.flagged).all() and found.flagged[-1]
    assert (clf.answers(X, reasons="all").reasons != "").all()
    joined = Answers.concatenate([found[:2], found[2:]])
    assert len(joined) == len(X)
    for name in ("labels", "proba", "vacuity", "log_evidence", "p_values", "sets", "reasons"):
        np.testing.assert_array_equal(getattr(joined, name), getattr(found, name))
    plain = clf.answers(X)
    assert plain.sets is plain.reasons is None and plain[:1].sets is None
    with pytest.raises(ValueError, match="reasons must be one of"):
        clf.answers(X, reasons="some")


def test_cross_fitting_follows_the_guarantees_closely(rng):
    covered, flagged = [], []
    X, y = draw(rng, 2000)
    for _ in range(8):
        model = fit(rng)
        covered.append(hits(model, X, y, coverage=0.9).mean())
        flagged.append((model.p_value(X) <= 0.1).mean())
    assert abs(np.mean(covered) - 0.9) < 0.025
    assert abs(np.mean(flagged) - 0.1) < 0.03


def test_held_out_dirichlets_are_the_model_s_own_of_those_rows(rng):
    X, y = draw(rng, 80)
    model = fit(rng).calibrate(X, y)
    order = np.argsort(model.score_samples(X), kind="stable")
    np.testing.assert_allclose(
        model.held_out_dirichlet().concentration,
        model.predict_dirichlet(X[order]).concentration,
        rtol=1e-9,
    )


def test_sets_are_those_of_the_posterior_mean(clf, rng):
    X = draw(rng, 30)[0]
    held = clf.evidence_.held_out_
    expected = prediction_sets(
        clf.predict_proba(X), clf.held_out_dirichlet().mean, held.labels, coverage=0.8, method="aps"
    )
    sets = clf.predict_set(X, 0.8, "aps")
    np.testing.assert_array_equal(sets, expected)
    rows = np.vstack([clf.predict_set(X[i : i + 1], 0.8, "aps") for i in range(30)])
    np.testing.assert_array_equal(sets, rows)


def test_without_evidence_the_classifier_breaks_the_tie(clf):
    label = clf.classes_[clf.classifier_proba(FAR).argmax(axis=1)]
    assert label != clf.classes_[0]
    assert clf.predict_with_reject(FAR, coverage=0.9).labels == label


@pytest.mark.parametrize("kind", ["total", "vacuity", "max_prob", "entropy", "log_density"])
def test_every_kind_can_decide(clf, rng, kind):
    X = draw(rng, 3000)[0]
    answer = clf.predict_with_reject(X, coverage=0.8, kind=kind)
    np.testing.assert_array_equal(answer.labels, clf.predict(X))
    np.testing.assert_array_equal(answer.accepted, clf.uncertainty(X, kind) <= answer.threshold)
    # Given 400 held-out rows the share is Beta-distributed around 0.8.
    assert abs(answer.accepted.mean() - 0.8) < 4 * np.sqrt(0.16 / 400)
    assert (answer.coverage, answer.risk, answer.kind) == (0.8, None, kind)


def test_a_risk_that_cannot_be_promised_rejects_everything_and_says_what_can(clf, rng):
    X = draw(rng, 20)[0]
    with pytest.warns(UserWarning, match=r"risk=0.001 cannot be promised .*the smallest risk") as w:
        answer = clf.predict_with_reject(X, risk=0.001)
    assert answer.rejected.all() and answer.threshold == -np.inf
    assert w[0].filename == __file__
    smallest = clf.reject_curve().upper.min()
    assert f"{smallest:.3g}" in str(w[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert clf.predict_with_reject(X, risk=smallest * 1.001).threshold > -np.inf


def test_few_held_out_rows_give_full_sets_and_a_warning(rng):
    X, y = draw(rng, 30)
    model = fit(rng).calibrate(X, y)
    message = "coverage=0.99 needs at least 99 held-out inputs, got 30: every set holds all"
    with pytest.warns(UserWarning, match=message) as w:
        assert model.predict_set(X, 0.99).all()
    assert w[0].filename == __file__


def test_without_labels_p_values_and_shares_work_and_the_rest_names_the_remedy(rng):
    X, _ = draw(rng, 100)
    model = DIPClassifier(LogisticRegression(), GDADensity(), normalizer=ZScore())
    model.fit(*draw(rng, 300)).calibrate(X)
    assert model.p_value(X).shape == (100,)
    assert model.predict_with_reject(X, coverage=0.5, kind="log_density").accepted.sum() == 51
    # A held-out row that is scored beside other rows may be less sure by its last digits.
    held_out = np.sort(model.uncertainty(X, "log_density"))
    assert model.predict_with_reject(X, coverage=0.5, kind="log_density").threshold > held_out[50]
    for ask in (
        lambda: model.predict_set(X),
        lambda: model.reject_curve(),
        lambda: model.predict_with_reject(X, risk=0.1),
    ):
        with pytest.raises(ValueError, match=r"held-out inputs.*clf\.calibrate\(X, y\)"):
            ask()


def test_rows_that_were_fitted_on_promise_nothing(rng):
    X, y = draw(rng, 100)
    model = DIPClassifier.paper(LogisticRegression()).fit(X, y)
    with pytest.raises(
        ValueError, match=r"predict_set needs held-out inputs.*in-sample.*calibrate"
    ):
        model.predict_set(X)
    assert model.calibrate(*draw(rng, 100)).predict_set(X).shape == (100, 3)


@pytest.fixture(scope="module")
def bayes():
    X, y = load_iris(return_X_y=True)
    return DIPClassifier(GaussianNB(), GDADensity()).fit(X, y)


@pytest.fixture(scope="module")
def narrow(bayes):
    clf = clone(bayes).set_params(spread=None).fit(*load_iris(return_X_y=True))
    return clf.predict_dirichlet(load_iris().data[:20])


@pytest.mark.parametrize(
    "again",
    [
        copy,
        deepcopy,
        lambda d: pickle.loads(pickle.dumps(d)),
        lambda d: d.update(np.eye(3)[np.zeros(20, int)]),
        lambda d: d[3:5],
        lambda d: next(iter(d)),
    ],
    ids=["copy", "deepcopy", "pickle", "update", "slice", "iteration"],
)
def test_every_copy_warns(narrow, again):
    with pytest.warns(FindingWarning, match="often several times too narrow"):
        again(narrow).credible_interval()


def test_a_plain_dirichlet_stays_one(narrow):
    plain = Dirichlet(narrow.concentration, narrow.log_evidence, narrow.prior)
    for d in (copy(plain), pickle.loads(pickle.dumps(plain)), plain.update(np.ones(3)), plain[:2]):
        assert d.caveat is None
    assert narrow.with_strength(narrow.strength).caveat is None


def test_a_notebook_shows_it_beside_the_intervals(narrow):
    plain = Dirichlet(narrow.concentration, narrow.log_evidence, narrow.prior)
    said = "often several times too narrow"
    assert said in narrow._repr_html_() and said not in plain._repr_html_()
    assert narrow._repr_html_().startswith(plain._repr_html_())


def test_a_warning_names_the_line_of_the_user(narrow):
    with pytest.warns(FindingWarning) as told:
        narrow.credible_interval()
    assert [warning.filename for warning in told] == [__file__]
