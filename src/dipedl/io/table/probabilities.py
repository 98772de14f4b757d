"""Naive Bayes, discriminants, mixtures, networks and dummies: all computed by numpy alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from .. import checks as c
from ..objects import is_a
from .entry import CLASSES, WIDE, Entry

_COUNTS = CLASSES | {"class_count_": c.floats("k")}
_COUNTED = _COUNTS | {
    "class_log_prior_": c.logs("k"),
    "feature_count_": c.floats("k", "d"),
    "feature_log_prob_": c.logs("k", "d"),
}
_SHAPES: dict[str, tuple[str, ...]] = {
    "full": ("c", "d", "d"),
    "tied": ("d", "d"),
    "diag": ("c", "d"),
    "spherical": ("c",),
}
_COVARIANCES = ("covariances_", "precisions_cholesky_", "precisions_")


def _covariances_fit(mixture: Any, sizes: c.Sizes) -> None:
    for name in _COVARIANCES:
        c.floats(*_SHAPES[mixture.covariance_type])(getattr(mixture, name), sizes)
    factors = mixture.precisions_cholesky_
    if mixture.covariance_type in ("full", "tied"):
        factors = np.diagonal(factors, axis1=-2, axis2=-1)
    c.need((factors >= 1 / c.LARGEST).all(), "have precisions that are not positive")


def _freedom_suffices(mixture: Any, sizes: c.Sizes) -> None:
    c.need((mixture.degrees_of_freedom_ > sizes["d"] - 1).all(), "have too few degrees of freedom")


def _are_of_probabilities(bayes: Any, sizes: c.Sizes) -> None:
    likely = np.exp(bayes.feature_log_prob_) < 1
    c.need(likely.all(), "have logarithms of no probabilities")


def _layers_fit(network: Any, sizes: c.Sizes) -> None:
    """Each layer reads as many numbers as the one before it writes."""
    widths = [sizes["d"], *(len(bias) for bias in network.intercepts_)]
    shapes = [weight.shape for weight in network.coefs_]
    c.need(shapes == list(pairwise(widths)), "are layers that do not fit")
    c.need(network.n_layers_ == len(widths) and widths[-1] == network.n_outputs_, "lack a layer")
    outputs = 1 if sizes["k"] == 2 else sizes["k"]
    c.need(outputs == network.n_outputs_, "have other outputs than classes")


_MIXTURE = WIDE | {
    "weights_": c.shares("c"),
    "means_": c.floats("c", "d"),
    " ".join(_COVARIANCES): c.plain,
}
_MIXED = {
    "converged_": c.flag,
    "n_iter_": c.count(),
    "lower_bound_": c.number(),
    "lower_bounds_ reg_covar_": c.plain,
}
_WEIGHT = c.positive("c")
_WEIGHTS = c.each(c.floats("*", "*"))
_BIASES = c.each(c.floats("*"))
_STEPS = c.each(c.either(c.floats("*", "*"), c.floats("*")))
_RATES = {"learning_rate_init learning_rate": c.number()}
_OPTIMIZERS = "sklearn.neural_network._stochastic_optimizers"

ENTRIES: dict[str, Entry] = {
    "sklearn.naive_bayes.GaussianNB": Entry(
        _COUNTS
        | {"theta_": c.floats("k", "d"), "var_": c.positive("k", "d")}
        | {"class_prior_": c.shares("k"), "epsilon_": c.number()}
    ),
    "sklearn.naive_bayes.MultinomialNB": Entry(_COUNTED),
    "sklearn.naive_bayes.BernoulliNB": Entry(_COUNTED, where=(_are_of_probabilities,)),
    "sklearn.naive_bayes.ComplementNB": Entry(_COUNTED | {"feature_all_": c.floats("d")}),
    "sklearn.naive_bayes.CategoricalNB": Entry(
        _COUNTS
        | {
            "class_log_prior_": c.logs("k"),
            "category_count_": c.each(c.floats("k", "*"), "d"),
            "feature_log_prob_": c.each(c.logs("k", "*"), "d"),
            "n_categories_": c.ints("d", least=0),
        }
    ),
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": Entry(
        CLASSES
        | {"coef_": c.floats("outputs", "d"), "intercept_": c.floats("outputs")}
        | {"means_": c.floats("k", "d"), "priors_": c.shares("k")},
        {
            "xbar_": c.floats("d"),
            "scalings_": c.floats("d", "*"),
            "covariance_": c.floats("d", "d"),
            "explained_variance_ratio_": c.floats("*"),
            "_max_components _n_features_out": c.count(),
        },
    ),
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": Entry(
        CLASSES
        | {"priors_": c.shares("k"), "means_": c.floats("k", "d")}
        | {
            "scalings_": c.each(c.positive("*"), "k"),
            "rotations_": c.each(c.floats("d", "*"), "k"),
        },
        {"covariance_": c.each(c.floats("d", "d"), "k")},
    ),
    "sklearn.mixture.GaussianMixture": Entry(_MIXTURE, _MIXED, where=(_covariances_fit,)),
    "sklearn.mixture.BayesianGaussianMixture": Entry(
        _MIXTURE
        | {"weight_concentration_": c.either(_WEIGHT, c.fields(_WEIGHT, _WEIGHT))}
        | {"mean_precision_": _WEIGHT, "degrees_of_freedom_": c.floats("c")},
        _MIXED
        | {
            "weight_concentration_prior_ mean_precision_prior_": c.number(),
            "degrees_of_freedom_prior_": c.number(),
            "mean_prior_": c.floats("d"),
            "covariance_prior_": c.plain,
        },
        where=(_covariances_fit, _freedom_suffices),
    ),
    "sklearn.neural_network.MLPClassifier": Entry(
        CLASSES
        | {
            "coefs_": _WEIGHTS,
            "intercepts_": _BIASES,
            "n_layers_ n_outputs_": c.count(),
            "out_activation_": c.one_of("softmax", "logistic"),
            "_label_binarizer": is_a("sklearn.preprocessing.LabelBinarizer", k="k"),
        },
        {
            "_random_state": is_a("numpy.random.RandomState"),
            "_optimizer": is_a(f"{_OPTIMIZERS}.AdamOptimizer", f"{_OPTIMIZERS}.SGDOptimizer"),
            "_best_coefs": _WEIGHTS,
            "_best_intercepts": _BIASES,
            "_no_improvement_count n_iter_ t_": c.count(),
            "loss_": c.number(),
            "best_loss_ best_validation_score_": c.maybe(c.number()),
            "loss_curve_ validation_scores_ _coef_indptr _intercept_indptr": c.plain,
        },
        where=(_layers_fit,),
    ),
    f"{_OPTIMIZERS}.AdamOptimizer": Entry(
        _RATES | {"beta_1 beta_2 epsilon": c.number(), "t": c.count(), "ms vs": _STEPS}, bare=True
    ),
    f"{_OPTIMIZERS}.SGDOptimizer": Entry(
        _RATES
        | {"lr_schedule": c.text, "momentum power_t": c.number(), "nesterov": c.flag}
        | {"velocities": _STEPS},
        bare=True,
    ),
    "sklearn.dummy.DummyClassifier": Entry(
        CLASSES
        | {"_strategy": c.text, "class_prior_": c.shares("k"), "sparse_output_": c.one_of(False)}
        | {"n_classes_": c.count("k"), "n_outputs_": c.count(1)},
        {"constant_": c.plain},
    ),
}
