"""Naive Bayes, discriminants, mixtures, networks and dummies: all computed by numpy alone."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ..checks import (
    LARGEST,
    Sizes,
    count,
    each,
    either,
    fields,
    flag,
    floats,
    ints,
    labels,
    logs,
    maybe,
    need,
    number,
    one_of,
    plain,
    positive,
    shares,
    text,
)
from ..objects import is_a
from .entry import WIDE, Entry

_CLASSES = WIDE | {"classes_": labels()}
_COUNTED = _CLASSES | {
    "class_count_": floats("k"),
    "class_log_prior_": logs("k"),
    "feature_count_": floats("k", "d"),
    "feature_log_prob_": logs("k", "d"),
}
_RANDOM = is_a("numpy.random.RandomState")
_SHAPES: dict[str, tuple[str, ...]] = {
    "full": ("c", "d", "d"),
    "tied": ("d", "d"),
    "diag": ("c", "d"),
    "spherical": ("c",),
}
_COVARIANCES = ("covariances_", "precisions_cholesky_", "precisions_")


def _covariances_fit(mixture: Any, sizes: Sizes) -> None:
    for name in _COVARIANCES:
        floats(*_SHAPES[mixture.covariance_type])(getattr(mixture, name), sizes)
    factors = mixture.precisions_cholesky_
    if mixture.covariance_type in ("full", "tied"):
        factors = np.diagonal(factors, axis1=-2, axis2=-1)
    need((factors >= 1 / LARGEST).all(), "have precisions that are not positive")


def _freedom_suffices(mixture: Any, sizes: Sizes) -> None:
    need((mixture.degrees_of_freedom_ > sizes["d"] - 1).all(), "have too few degrees of freedom")


_MIXTURE = {
    "weights_": shares("c"),
    "means_": floats("c", "d"),
    **{name: plain for name in _COVARIANCES},
}
_MIXED = {
    "converged_": flag,
    "n_iter_": count(),
    "lower_bound_": number(),
    "lower_bounds_": plain,
    "reg_covar_": plain,
}


def _layers_fit(network: Any, sizes: Sizes) -> None:
    """Each layer reads as many numbers as the one before it writes."""
    widths = [sizes["d"], *(len(bias) for bias in network.intercepts_)]
    shapes = [weight.shape for weight in network.coefs_]
    need(shapes == list(pairwise(widths)), "are layers that do not fit")
    need(network.n_layers_ == len(widths) and widths[-1] == network.n_outputs_, "lack a layer")
    need(sizes["outputs"] == network.n_outputs_, "have other outputs than classes")


def _outputs(network: Any, sizes: Sizes) -> None:
    sizes["outputs"] = 1 if sizes["k"] == 2 else sizes["k"]


_WEIGHTS = each(floats("*", "*"))
_BIASES = each(floats("*"))
_STEPS = each(either(floats("*", "*"), floats("*")))
_RATES = {"learning_rate_init": number(), "learning_rate": number()}

ENTRIES: dict[str, Entry] = {
    "sklearn.naive_bayes.GaussianNB": Entry(
        _CLASSES
        | {
            "theta_": floats("k", "d"),
            "var_": positive("k", "d"),
            "class_prior_": shares("k"),
            "class_count_": floats("k"),
            "epsilon_": number(),
        }
    ),
    "sklearn.naive_bayes.MultinomialNB": Entry(_COUNTED),
    "sklearn.naive_bayes.BernoulliNB": Entry(
        _COUNTED,
        where=(
            lambda model, sizes: need(
                (np.exp(model.feature_log_prob_) < 1).all(), "have logarithms of no probabilities"
            ),
        ),
    ),
    "sklearn.naive_bayes.ComplementNB": Entry(_COUNTED | {"feature_all_": floats("d")}),
    "sklearn.naive_bayes.CategoricalNB": Entry(
        _CLASSES
        | {
            "class_count_": floats("k"),
            "class_log_prior_": logs("k"),
            "category_count_": each(floats("k", "*"), "d"),
            "feature_log_prob_": each(logs("k", "*"), "d"),
            "n_categories_": ints("d", least=0),
        }
    ),
    "sklearn.discriminant_analysis.LinearDiscriminantAnalysis": Entry(
        _CLASSES
        | {"coef_": floats("outputs", "d"), "intercept_": floats("outputs")}
        | {"means_": floats("k", "d"), "priors_": shares("k")},
        {
            "xbar_": floats("d"),
            "scalings_": floats("d", "*"),
            "covariance_": floats("d", "d"),
            "explained_variance_ratio_": floats("*"),
            "_max_components": count(),
            "_n_features_out": count(),
        },
    ),
    "sklearn.discriminant_analysis.QuadraticDiscriminantAnalysis": Entry(
        _CLASSES
        | {
            "priors_": shares("k"),
            "means_": floats("k", "d"),
            "scalings_": each(positive("*"), "k"),
            "rotations_": each(floats("d", "*"), "k"),
        },
        {"covariance_": each(floats("d", "d"), "k")},
    ),
    "sklearn.mixture.GaussianMixture": Entry(WIDE | _MIXTURE, _MIXED, where=(_covariances_fit,)),
    "sklearn.mixture.BayesianGaussianMixture": Entry(
        WIDE
        | _MIXTURE
        | {
            "weight_concentration_": either(positive("c"), fields(positive("c"), positive("c"))),
            "mean_precision_": positive("c"),
            "degrees_of_freedom_": floats("c"),
        },
        _MIXED
        | {
            "weight_concentration_prior_": number(),
            "mean_precision_prior_": number(),
            "mean_prior_": floats("d"),
            "degrees_of_freedom_prior_": number(),
            "covariance_prior_": plain,
        },
        where=(_covariances_fit, _freedom_suffices),
    ),
    "sklearn.neural_network.MLPClassifier": Entry(
        _CLASSES
        | {
            "coefs_": _WEIGHTS,
            "intercepts_": _BIASES,
            "n_layers_": count(),
            "n_outputs_": count(),
            "out_activation_": one_of("softmax", "logistic"),
            "_label_binarizer": is_a("sklearn.preprocessing.LabelBinarizer", k="k"),
        },
        {
            "_random_state": _RANDOM,
            "_optimizer": is_a(
                "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
                "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
            ),
            "_best_coefs": _WEIGHTS,
            "_best_intercepts": _BIASES,
            "_no_improvement_count": count(),
            "n_iter_": count(),
            "t_": count(),
            "loss_": number(),
            "best_loss_": maybe(number()),
            "loss_curve_": plain,
            "_coef_indptr": plain,
            "_intercept_indptr": plain,
            "validation_scores_": plain,
            "best_validation_score_": maybe(number()),
        },
        where=(_outputs, _layers_fit),
    ),
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer": Entry(
        _RATES
        | {"beta_1": number(), "beta_2": number(), "epsilon": number(), "t": count()}
        | {"ms": _STEPS, "vs": _STEPS},
        bare=True,
    ),
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer": Entry(
        _RATES
        | {"lr_schedule": text, "momentum": number(), "nesterov": flag}
        | {"power_t": number(), "velocities": _STEPS},
        bare=True,
    ),
    "sklearn.dummy.DummyClassifier": Entry(
        _CLASSES
        | {
            "_strategy": text,
            "n_classes_": count("k"),
            "class_prior_": shares("k"),
            "n_outputs_": count(1),
            "sparse_output_": one_of(False),
        },
        {"constant_": plain},
    ),
}
