"""One price of caution: withheld sharpening and shrinkage together, from held-out rows."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_digits, make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from dipedl import DIPClassifier
from dipedl.density import GDADensity
from dipedl.evidence import CautionBudget, ZScore
from dipedl.explanation import diagnose
from dipedl.plots import CautionDisplay
from dipedl.pretrained import DIPModule
from weekly import sample_of

CLASSIFIERS = {
    "sharpened": RandomForestClassifier(40, min_samples_leaf=3, random_state=0),
    "flattened": GaussianNB(),
}


def rows():
    return make_classification(900, 6, n_informative=4, n_classes=3, class_sep=1.5, random_state=1)


@cache
def fitted(name, caution=None, calibrator=None):
    model = DIPClassifier(
        CLASSIFIERS[name], GDADensity(), caution=caution, calibrator=calibrator, random_state=0
    )
    return model.fit(*rows())


def losses(model):
    """By a loop: held-out Brier scores of the classifier, of one that sharpens no flagged row, of
    the prior and of the model; all but the last at full evidence."""
    held, t = model.evidence_.held_out_, model.evidence_.calibrator_.temperature_
    n, k = model.evidence_.n_, 3
    mean = np.asarray(model.held_out_dirichlet().mean)
    found = np.zeros(4)
    for i, label in enumerate(held.labels):
        truth, bare = np.eye(k)[label], held.bare_proba[i]
        full = bare ** (1 / t) / (bare ** (1 / t)).sum()
        flagged = held.scores[i] <= model.evidence_.sharpening_[0]
        never = bare if flagged and t < 1 else full
        for j, P in enumerate((full, never, np.full(k, 1 / k))):
            P = (n * P + 1 / 2) / (n + k / 2)
            found[j] += ((P - truth) ** 2).sum() / len(held)
        found[3] += ((mean[i] - truth) ** 2).sum() / len(held)
    return found


@pytest.mark.parametrize("name", CLASSIFIERS)
@pytest.mark.parametrize("caution", [0.001, 0.02, 0.1])
def test_the_price_is_kept_on_held_out_rows(name, caution):
    model = fitted(name, caution)
    held = model.evidence_.held_out_
    assert model.normalizer_.in_budget(held.scores, held.counts).all()
    full, never, prior, paid = losses(model)
    unit = max(min(full, prior - full), prior / len(held))
    assert paid <= never + caution * unit + 1e-9
    if name == "sharpened":
        assert paid >= never + 0.99 * caution * unit
    price = model.evidence_.price()
    np.testing.assert_allclose(price[:2], (full, max(full, never)), rtol=1e-9)
    assert (price.unit, price.paid) == pytest.approx((unit, paid), rel=1e-9)
    assert price.allowed == pytest.approx(max(full, never) + caution * unit, rel=1e-9)
    assert (model.evidence_.calibrator_.temperature_ < 1) == (name == "sharpened")


def test_without_a_setting_the_price_is_two_percent():
    np.testing.assert_array_equal(
        fitted("sharpened").predict_proba(rows()[0]),
        fitted("sharpened", 0.02).predict_proba(rows()[0]),
    )


@pytest.mark.parametrize("name", sample_of(CLASSIFIERS, "sharpened"))
def test_more_caution_pays_more_and_doubts_more(name):
    X = np.random.default_rng(0).normal(scale=4.0, size=(500, 6))
    models = [fitted(name, caution) for caution in (0.0, 0.005, 0.02, 0.1, 0.5)]
    paid = [model.evidence_.price().paid for model in models]
    assert (np.diff(paid) > 0).all()
    doubt = np.array([model.uncertainty(X) for model in models])
    assert (np.diff(doubt.mean(axis=1)) > 0).all()


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_without_caution_nothing_is_paid(name):
    model, X = fitted(name, 0.0), rows()[0]
    price = model.evidence_.price()
    assert price.paid <= price.full + 1e-9
    P, n = model.classifier_proba(X), model.evidence_.n_
    assert (model.predict_ood(X) == -1).any()
    if name == "sharpened":
        np.testing.assert_allclose(model.predict_proba(X), (n * P + 1 / 2) / (n + 3 / 2), atol=1e-7)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_a_diagnosis_judges_the_classifier_as_classifier_proba_has_it(name):
    model = fitted(name, 1.0)
    held, t = model.evidence_.held_out_, model.evidence_.calibrator_.temperature_
    assert model.evidence_.temperature_ < t
    P = held.bare_proba ** (1 / t)
    P /= P.sum(axis=1, keepdims=True)
    own = P[np.arange(len(held)), held.labels]
    nll = -np.log(np.maximum(own, np.finfo(float).tiny)).mean()
    numbers = {f.code: f.numbers for f in diagnose(model).findings}
    of_temperature = next(n for code, n in numbers.items() if code.startswith("temperature"))
    of_confidence = next(n for code, n in numbers.items() if code.startswith("classifier_"))
    assert of_temperature["nll_after"] == pytest.approx(nll)
    assert of_confidence["confidence"] == pytest.approx(P.max(axis=1).mean())
    brier = ((P - np.eye(3)[held.labels]) ** 2).sum(axis=1).mean()
    assert numbers["evidence_cost"]["brier_bare"] == pytest.approx(brier)


def test_a_classifier_that_is_not_sharpened_pays_by_its_budget_alone():
    X, y = rows()
    same = DIPClassifier(
        GaussianNB(), GDADensity(), normalizer=CautionBudget(0.05), calibrator="passthrough"
    ).fit(X, y)
    model = fitted("flattened", 0.05, "passthrough")
    np.testing.assert_allclose(model.predict_proba(X), same.predict_proba(X), rtol=1e-6)


def test_a_module_takes_the_same_steps():
    X, y = rows()
    network, linear = torch.nn.Linear(6, 3).double().eval(), LogisticRegression().fit(X, y)
    network.weight.data, network.bias.data = map(
        torch.from_numpy, (linear.coef_, linear.intercept_)
    )
    Z, labels = torch.from_numpy(X), torch.from_numpy(y)
    models = [DIPModule(network, caution=c).fit_density([(Z, labels)]) for c in (None, 0.02, 0.2)]
    prices = [model.evidence_.price() for model in models]
    assert prices[0] == prices[1]
    assert prices[2].allowed > prices[1].allowed
    doubt = [float(model(2 * Z).vacuity.mean()) for model in models[1:]]
    assert doubt[1] > doubt[0]


@cache
def digits():
    X, y = load_digits(return_X_y=True)
    X, y = X[::4], y[::4]
    return DIPClassifier(CLASSIFIERS["sharpened"], caution=0.03, random_state=0).fit(X, y), X, y


def test_the_curve_is_that_of_fits_at_each_price():
    model, X, y = digits()
    curve = diagnose(model).caution
    assert curve.caution[curve.present] == 0.03
    # The temperature of the mean may gain what the first per cents cost.
    assert (np.diff(curve.price[1:]) > 0).all()
    assert (np.diff(curve.outlier_brier) < 0).all()
    again = DIPClassifier(CLASSIFIERS["sharpened"], caution=0.1, random_state=0).fit(X, y)
    (at,) = np.flatnonzero(curve.caution == 0.1)
    price, outliers = again.evidence_.price(), again.evidence_.held_out_.outliers
    assert curve.price[at] == pytest.approx((price.paid - price.full) / price.unit)
    P = again.evidence_.calibrate_proba(outliers.proba, outliers.scores)
    mean = np.asarray(again.evidence_.dirichlet(P, outliers.scores).mean)
    brier = np.mean([sum((p - 0.1) ** 2 for p in row) for row in mean])
    assert curve.outlier_brier[at] == pytest.approx(brier)
    assert diagnose(model).to_dict()["caution"]["present"] == curve.present
    # A normaliser of one's own has no place on it; a single density makes no pseudo-outliers.
    own = DIPClassifier(CLASSIFIERS["sharpened"], normalizer=CautionBudget(), random_state=0)
    assert diagnose(own.fit(X, y)).caution.present is None
    assert diagnose(fitted("sharpened")).caution is None
    assert "caution_curve_missing" not in diagnose(model).codes


def test_a_model_without_a_curve_says_so():
    X, y = rows()
    table = pd.DataFrame(X).round(1).astype(str)
    encode = make_pipeline(OneHotEncoder(handle_unknown="ignore"), GaussianNB())
    encode[0].set_params(sparse_output=False, max_categories=5)
    for model in (DIPClassifier(encode, random_state=0).fit(table, y), fitted("sharpened")):
        found = diagnose(model)
        assert found.caution is None
        assert "caution_curve_missing" in found.codes
    assert "caution_curve_missing" not in diagnose(classifier(normalizer=ZScore())).codes


def test_the_curve_is_drawn_with_the_present_point():
    model, _, _ = digits()
    display = CautionDisplay.from_estimator(model)
    curve = display.curve
    np.testing.assert_allclose(
        display.line_.get_xydata(), np.c_[100 * curve.price, curve.outlier_brier]
    )
    (present,) = display.ax_.lines[1].get_xydata()
    np.testing.assert_allclose(present, display.line_.get_xydata()[curve.present])
    with pytest.raises(ValueError, match="estimator has no pseudo-outliers"):
        CautionDisplay.from_estimator(fitted("sharpened"))


def classifier(**settings):
    return DIPClassifier(GaussianNB(), GDADensity(), **settings).fit(*rows())


def module(**settings):
    return DIPModule(torch.nn.Linear(6, 3).eval(), **settings)


REFUSED = [
    (-0.1, {}, ValueError, "caution must be in"),
    (1.5, {}, ValueError, "caution must be in"),
    (np.nan, {}, ValueError, "caution must be in"),
    (True, {}, TypeError, "caution must be a number"),
    ("much", {}, TypeError, "caution must be a number"),
    (0.1, {"normalizer": CautionBudget(0.1)}, ValueError, "caution=0.1 .* normalizer="),
]


@pytest.mark.parametrize("build", [classifier, module])
@pytest.mark.parametrize(("caution", "others", "error", "message"), REFUSED)
def test_it_is_refused_by_name(build, caution, others, error, message):
    with pytest.raises(error, match=message):
        build(caution=caution, **others)
