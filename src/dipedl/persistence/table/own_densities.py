"""Densities of this library and what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import (
    SHARE,
    SIZE,
    Check,
    Sizes,
    count,
    each,
    either,
    flag,
    floats,
    ints,
    labels,
    logs,
    mapping,
    maybe,
    need,
    number,
    one_of,
    positive,
    real,
    text,
)
from ..objects import fitted, has, is_a, model, ours
from .entry import WIDE, Entry
from .own_models import RANKS

_ROUNDING = 1e-5
#: Squares of features, which may be as large as a float.
_ANY = np.float64(np.inf)
_LEAST, _MOST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
_SCALER = is_a("sklearn.preprocessing.StandardScaler", d="d")
_CLASSIFIER = "classifier"


def _scatter_fits(moments: Any, sizes: Sizes) -> None:
    """A square, a diagonal, or a root of fewer rows than columns."""
    need(moments.scatter.ndim == 1 or len(moments.scatter) <= sizes["d"], "have too many rows")
    if moments.higher is not None:
        diagonal = moments.scatter.ndim == 1
        need(len(moments.higher.quartic) == (sizes["d"] if diagonal else 1), "have other powers")


def _factor_is_regular(factor: Any, sizes: Sizes) -> None:
    whitener = factor.whitener
    if not isinstance(whitener, np.ndarray):
        need(whitener.basis.shape[1] == sizes["d"], "have a factor of another width")
        return
    scales = whitener if whitener.ndim == 1 else np.diagonal(whitener)
    need((scales > 0).all(), "have a factor that is not positive")


def _variances_are_positive(thin: Any, sizes: Sizes) -> None:
    need(thin.outer > 0 and (thin.inner > 0).all(), "have variances that are not positive")


def _classes_are_complete(density: Any, sizes: Sizes) -> None:
    """Only a density of classes that are announced, and without rows, has no factors."""
    complete = all(moments.weight > 0 for moments in density.moments_)
    need(hasattr(density, "shrinkage_") >= complete, "have no shrinkage")
    need(density._factors_ is None or complete, "have factors of a class without rows")


def _gaussians(**parameters: Check) -> Entry:
    return Entry(
        WIDE
        | {
            "classes_": labels(),
            "moments_": each(ours("Moments", d="origin"), "k"),
            "_factors_": maybe(each(ours("GaussianFactor", d="mean"), "k")),
        },
        {"shrinkage_": floats("k", least=0, most=1), "target_": floats("k", least=0, most=_ANY)},
        parameters={"covariance_type": one_of("full", "tied", "diag"), **parameters},
        where=(_classes_are_complete,),
    )


def _neighbours_fit(density: Any, sizes: Sizes) -> None:
    """The index is the exact Euclidean one of the rows that are kept."""
    index, k = density.neighbors_, density.n_neighbors_
    need(index.n_neighbors == k <= sizes["n"] == index.n_samples_fit_, "have other neighbours")
    need(index.effective_metric_ == "euclidean", "have another distance")


def _weights_add_up(density: Any, sizes: Sizes) -> None:
    need(abs(np.exp(density.log_weights_).sum() - 1) < _ROUNDING, "have weights that do not add up")
    _scale_is_known(density, sizes)


def _scale_is_known(density: Any, sizes: Sizes) -> None:
    scale = density.scaler_.scale_
    need(scale is not None and (scale > 0).all(), "have a scale that is not positive")


def _slices_within(value: Any, sizes: Sizes) -> None:
    need(isinstance(value, slice), f"is a {type(value).__name__}, not a slice")
    ends = [end for end in (value.start, value.stop, value.step) if end is not None]
    need(all(isinstance(end, int) and abs(end) <= sizes["d"] for end in ends), "leaves the columns")


def _blocks_fit(density: Any, sizes: Sizes) -> None:
    columns = range(sizes["d"])
    for part, block in zip(density.densities_, density.blocks_, strict=True):
        width = getattr(part, "n_features_in_", len(columns[block]))
        need(width == len(columns[block]), "have a density of another width than its block")


def _components_are_known(density: Any, sizes: Sizes) -> None:
    known = {*density.estimators_, *([_CLASSIFIER] if density.with_classifier_ else [])}
    need(known >= {*density.component_names_}, "have components of no density")


def _fusion_fits(density: Any, sizes: Sizes) -> None:
    _components_are_known(density, sizes)
    names = {*density.component_names_}
    need([*density.normal_scores_] == [*density.component_names_], "have other normal scores")
    need(density.weights_.keys() == names >= {*density.estimators_}, "have weights of others")
    need(_CLASSIFIER not in names or density.with_classifier_, "have another classifier")
    need(any(density.weights_.values()), "have weights that are all 0")


def _choice_fits(density: Any, sizes: Sizes) -> None:
    _components_are_known(density, sizes)
    fusion = density.fusion_
    if fusion is None:
        need(density.choice_ in density.estimators_, "have chosen no density")
        need(density.component_names_ == (density.choice_,), "have other components")
        return
    need(density.component_names_ == fusion.component_names_, "have another fusion")
    need(fusion.estimators_.keys() == density.estimators_.keys(), "have another fusion")
    need(fusion.with_classifier_ == density.with_classifier_, "have another fusion")


_SEVERAL: dict[str, Check] = {
    "reach_": ours("Reach", d="low"),
    "estimators_": mapping(text, fitted(model(d="d"))),
    "failed_": mapping(text, text),
    "with_classifier_": flag,
    "component_names_": each(text, kind=tuple),
}


def _names(value: Any, sizes: Sizes) -> None:
    need(type(value) is set, f"is a {type(value).__name__}, not a set")
    each(text)([*value], sizes)


_BLIND: dict[str, Check] = {"blind_": _names}

ENTRIES: dict[str, Entry] = {
    "density.GDADensity": _gaussians(class_weights=one_of("equal", "empirical")),
    "density.MahalanobisDensity": _gaussians(),
    "density.GaussianDensity": Entry(
        WIDE
        | {
            "moments_": ours("Moments", d="origin"),
            "shrinkage_": SHARE,
            "_factor_": maybe(ours("GaussianFactor", d="mean")),
        },
        parameters={"covariance_type": one_of("full", "diag")},
        where=(lambda density, sizes: need(density.moments_.weight > 0, "have no rows"),),
    ),
    "density.KernelDensity": Entry(
        WIDE
        | {
            "bandwidth_": SIZE,
            "scaler_": _SCALER,
            "rows_": floats("n", "d"),
            "log_weights_": logs("n"),
        },
        where=(_weights_add_up,),
    ),
    "density.KNNDensity": Entry(
        WIDE
        | {
            "row_numbers_": ints("n", least=0),
            "n_neighbors_": count(least=1),
            "center_": floats("d", most=_ANY),
            "neighbors_": is_a("sklearn.neighbors.NearestNeighbors", d="d"),
            "radius_floor_": number(_LEAST, _MOST),
        },
        parameters={
            "index": one_of("exact", "faiss"),
            "probe": SHARE,
            "n_neighbors": count(least=1),
        },
        where=(_neighbours_fit,),
    ),
    "density.GaussianMixtureDensity": Entry(
        WIDE | {"scaler_": _SCALER, "mixture_": is_a("sklearn.mixture.GaussianMixture", d="d")},
        where=(_scale_is_known,),
    ),
    "density.CustomDensity": Entry(WIDE | {"model_": fitted(has("score_samples", "log_prob"))}),
    "density.RelativeDensity": Entry(
        WIDE | {"density_": fitted(model(d="d")), "background_": fitted(model(d="d"))}
    ),
    "density.BlockSumDensity": Entry(
        WIDE
        | {
            "blocks_": each(_slices_within, "b"),
            "densities_": each(fitted(model()), "b"),
            "center_": floats("b"),
            "scale_": positive("b"),
        },
        where=(_blocks_fit,),
    ),
    "density.TypicalityDensity": Entry(
        WIDE | {"density_": fitted(model(d="d")), "normal_score_": fitted(ours("RankNormal"))}
    ),
    "density.FusedDensity": Entry(
        _SEVERAL
        | {
            "normal_scores_": mapping(text, fitted(ours("NormalScores"))),
            "weights_": mapping(text, real(0)),
            "pseudo_outlier_auroc_": mapping(text, mapping(text, number())),
        },
        _BLIND,
        parameters={"margin": real(0)},
        where=(_fusion_fits,),
    ),
    "density.DensitySelector": Entry(
        WIDE
        | _SEVERAL
        | _BLIND
        | {
            "ranking_": each(mapping(text, either(number(), text))),
            "choice_": text,
            "runner_up_": maybe(text),
            "fusion_": maybe(fitted(ours("FusedDensity"))),
        },
        where=(_choice_fits,),
    ),
    "density.NormalScores": RANKS,
    "density.Reach": Entry(
        {
            "low": floats("d", most=_ANY),
            "width": floats("d", least=0, most=_ANY),
            "ceiling": real(),
            "unit": SIZE,
        },
        bare=True,
    ),
    "gaussians.GaussianFactor": Entry(
        {
            "mean": floats("d", most=_ANY),
            "rest": maybe(floats("d", most=_ANY)),
            "whitener": either(
                floats("d", most=_ANY), floats("d", "d", most=_ANY), ours("ThinWhitener")
            ),
            "log_det": real(),
        },
        where=(_factor_is_regular,),
        bare=True,
    ),
    "gaussians.Moments": Entry(
        {
            "weight": real(0),
            "origin": floats("d", most=_ANY),
            "offset": floats("d", most=_ANY),
            "scatter": either(floats("d", most=_ANY), floats("*", "d", most=_ANY)),
            "higher": maybe(ours("HigherMoments", d="cubic")),
        },
        where=(_scatter_fits,),
        bare=True,
    ),
    "gaussians.HigherMoments": Entry(
        {"cubic": floats("d", finite=False), "quartic": floats("*", finite=False)}, bare=True
    ),
    "gaussians.ThinWhitener": Entry(
        {"basis": floats("r", "d"), "inner": floats("r", most=_ANY), "outer": number(0, _MOST)},
        where=(_variances_are_positive,),
        bare=True,
    ),
}
