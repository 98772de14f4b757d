"""Densities of this library and what they are made of."""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import checks as c
from ..homes import is_own_type
from .entry import CLASSES, WIDE, Entry
from .own_models import RANKS

_ROUNDING = 1e-5
#: Squares of features, which may be as large as a float.
_ANY = np.float64(np.inf)
_ROW = c.floats("d", most=_ANY)
_WHITENER = c.either(_ROW, c.floats("d", "d", most=_ANY), c.ours("gaussians.ThinWhitener"))
_LEAST, _MOST = float(np.finfo(np.float64).tiny), float(np.finfo(np.float64).max)
_SCALER = c.is_a("sklearn.preprocessing.StandardScaler", d="d")
_DENSITY = c.fitted(c.model("score_samples", d="d"))
_CLASSIFIER = "classifier"


def _scatter_fits(moments: Any, sizes: c.Sizes) -> None:
    """A square, a diagonal, or a root of fewer rows than columns."""
    c.need(moments.scatter.ndim == 1 or len(moments.scatter) <= sizes["d"], "have too many rows")
    if moments.higher is not None:
        diagonal = moments.scatter.ndim == 1
        c.need(len(moments.higher.quartic) == (sizes["d"] if diagonal else 1), "have other powers")


def _factor_is_regular(factor: Any, sizes: c.Sizes) -> None:
    whitener = factor.whitener
    if not isinstance(whitener, np.ndarray):
        c.need(whitener.basis.shape[1] == sizes["d"], "have a factor of another width")
        return
    scales = whitener if whitener.ndim == 1 else np.diagonal(whitener)
    c.need((scales > 0).all(), "have a factor that is not positive")


def _each_is_diagonal(moments: Any, sizes: c.Sizes) -> None:
    c.need(all(m.scatter.ndim == 1 for m in moments.along), "have a scatter that is no diagonal")


def _variances_are_positive(thin: Any, sizes: c.Sizes) -> None:
    c.need(thin.outer > 0 and (thin.inner > 0).all(), "have variances that are not positive")


def _classes_are_complete(density: Any, sizes: c.Sizes) -> None:
    """Only a density of classes that are announced, and without rows, has no factors."""
    weights = getattr(density.moments_, "weight", None)
    if weights is None:
        weights = np.array([moments.weight for moments in density.moments_])
    complete = bool((weights > 0).all())
    c.need(hasattr(density, "shrinkage_") >= complete, "have no shrinkage")
    factors = vars(density)["_factors_"]
    c.need(factors is None or complete, "have factors of a class without rows")


def _form_fits(density: Any, sizes: c.Sizes) -> None:
    """Moments and factors are in the form of the covariance_type."""
    kind, moments, factors = density.covariance_type, density.moments_, vars(density)["_factors_"]
    prefix = {"tied": "Tied", "shared-basis": "Basis"}.get(kind)
    sums = None if prefix == "Tied" and density.shrinkage == "ledoit-wolf" else prefix
    for held, name in ((moments, f"{sums}Moments"), (factors, f"{prefix}Factors")):
        of_all = "None" not in name
        c.need(held is None or isinstance(held, list) != of_all, "have another covariance_type")
        if held is not None and of_all:
            c.need(is_own_type(type(held), f"gaussians.{name}"), "have another covariance_type")
            c.need(held[0].mean.shape == (sizes["d"],), "have other features")


def _gaussians(**parameters: c.Check) -> Entry:
    return Entry(
        CLASSES
        | {
            "moments_": c.either(
                c.each(c.ours("gaussians.Moments", d="origin"), "k"),
                c.ours("gaussians.TiedMoments", k="origin"),
                c.ours("gaussians.BasisMoments", d="centre", k="along"),
            ),
            "_factors_": c.maybe(
                c.either(
                    c.each(c.ours("gaussians.GaussianFactor", d="mean"), "k"),
                    c.ours("gaussians.TiedFactors", "gaussians.BasisFactors", k="mean"),
                )
            ),
        },
        {"shrinkage_": c.floats("k", least=0, most=1)}
        | {"target_": c.floats("k", least=0, most=_ANY)},
        parameters={
            "covariance_type": c.one_of("full", "tied", "diag", "shared-basis"),
            **parameters,
        },
        where=(_classes_are_complete, _form_fits),
    )


def _neighbours_fit(density: Any, sizes: c.Sizes) -> None:
    """The index is the exact Euclidean one of the rows that are kept."""
    index, k = density.neighbors_, density.n_neighbors_
    c.need(index.n_neighbors == k <= sizes["n"] == index.n_samples_fit_, "have other neighbours")
    c.need(index.effective_metric_ == "euclidean", "have another distance")


def _weights_add_up(density: Any, sizes: c.Sizes) -> None:
    total = np.exp(density.log_weights_).sum()
    c.need(abs(total - 1) < _ROUNDING, "have weights that do not add up")
    _scale_is_known(density, sizes)


def _scale_is_known(density: Any, sizes: c.Sizes) -> None:
    scale = density.scaler_.scale_
    c.need(scale is not None and (scale > 0).all(), "have a scale that is not positive")


def _slices_within(value: Any, sizes: c.Sizes) -> None:
    c.need(isinstance(value, slice), f"is a {type(value).__name__}, not a slice")
    ends = [end for end in (value.start, value.stop, value.step) if end is not None]
    inside = all(isinstance(end, int) and abs(end) <= sizes["d"] for end in ends)
    c.need(inside, "leaves the columns")


def _blocks_fit(density: Any, sizes: c.Sizes) -> None:
    columns = range(sizes["d"])
    for part, block in zip(density.densities_, density.blocks_, strict=True):
        width = getattr(part, "n_features_in_", len(columns[block]))
        c.need(width == len(columns[block]), "have a density of another width than its block")


def _components_are_known(density: Any, sizes: c.Sizes) -> None:
    known = {*density.estimators_, *([_CLASSIFIER] if density.with_classifier_ else [])}
    c.need(known >= {*density.component_names_}, "have components of no density")


def _fusion_fits(density: Any, sizes: c.Sizes) -> None:
    _components_are_known(density, sizes)
    names = {*density.component_names_}
    c.need([*density.normal_scores_] == [*density.component_names_], "have other normal scores")
    c.need(density.weights_.keys() == names >= {*density.estimators_}, "have weights of others")
    c.need(_CLASSIFIER not in names or density.with_classifier_, "have another classifier")
    c.need(any(density.weights_.values()), "have weights that are all 0")


def _choice_fits(density: Any, sizes: c.Sizes) -> None:
    _components_are_known(density, sizes)
    fusion = density.fusion_
    if fusion is None:
        c.need(density.choice_ in density.estimators_, "have chosen no density")
        c.need(density.component_names_ == (density.choice_,), "have other components")
        return
    c.need(density.component_names_ == fusion.component_names_, "have another fusion")
    c.need(fusion.estimators_.keys() == density.estimators_.keys(), "have another fusion")
    c.need(fusion.with_classifier_ == density.with_classifier_, "have another fusion")


_SEVERAL: dict[str, c.Check] = {
    "reach_": c.ours("density.Reach", d="low"),
    "estimators_": c.mapping(c.text, _DENSITY),
    "failed_": c.mapping(c.text, c.text),
    "with_classifier_": c.flag,
    "component_names_": c.each(c.text, kind=tuple),
}


_BLIND = {"blind_": c.each(c.text, kind=set)}
#: Of a fit to probabilities.
_CLASSES = {"n_classes_": c.count(least=1)}

ENTRIES: dict[str, Entry] = {
    "density.GDADensity": _gaussians(class_weights=c.one_of("equal", "empirical")),
    "density.MahalanobisDensity": _gaussians(),
    "density.GaussianDensity": Entry(
        WIDE
        | {"moments_": c.ours("gaussians.Moments", d="origin"), "shrinkage_": c.SHARE}
        | {"_factor_": c.maybe(c.ours("gaussians.GaussianFactor", d="mean"))},
        parameters={"covariance_type": c.one_of("full", "diag")},
        where=(lambda density, sizes: c.need(density.moments_.weight > 0, "have no rows"),),
    ),
    "density.KernelDensity": Entry(
        WIDE
        | {"bandwidth_": c.SIZE, "scaler_": _SCALER}
        | {"rows_": c.floats("n", "d"), "log_weights_": c.logs("n")},
        where=(_weights_add_up,),
    ),
    "density.KNNDensity": Entry(
        WIDE
        | {
            "row_numbers_": c.ints("n", least=0),
            "n_neighbors_": c.count(least=1),
            "center_": _ROW,
            "neighbors_": c.is_a("sklearn.neighbors.NearestNeighbors", d="d"),
            "radius_floor_": c.number(_LEAST, _MOST),
        },
        parameters={"n_neighbors": c.count(least=1)},
        where=(_neighbours_fit,),
        gone=frozenset({"index", "probe", "n_jobs"}),
    ),
    "density.GaussianMixtureDensity": Entry(
        WIDE | {"scaler_": _SCALER, "mixture_": c.is_a("sklearn.mixture.GaussianMixture", d="d")},
        where=(_scale_is_known,),
    ),
    "density.CustomDensity": Entry(WIDE | {"model_": c.fitted(c.has("score_samples", "log_prob"))}),
    "density.RelativeDensity": Entry(WIDE | {"density_ background_": _DENSITY}),
    "density.BlockSumDensity": Entry(
        WIDE
        | {"blocks_": c.each(_slices_within, "b"), "densities_": c.each(c.fitted(c.model()), "b")}
        | {"center_": c.floats("b"), "scale_": c.positive("b")},
        where=(_blocks_fit,),
    ),
    "density.FusedDensity": Entry(
        _SEVERAL
        | {
            "normal_scores_": c.mapping(c.text, c.fitted(c.ours("density.NormalScores"))),
            "weights_": c.mapping(c.text, c.real(0)),
            "pseudo_outlier_auroc_": c.mapping(c.text, c.mapping(c.text, c.number())),
        },
        _BLIND | _CLASSES,
        parameters={"margin": c.real(0)},
        where=(_fusion_fits,),
    ),
    "density.DensitySelector": Entry(
        WIDE
        | _SEVERAL
        | _BLIND
        | {
            "ranking_": c.each(c.mapping(c.text, c.either(c.number(), c.text))),
            "choice_": c.text,
            "runner_up_": c.maybe(c.text),
            "fusion_": c.maybe(c.fitted(c.ours("density.FusedDensity"))),
        },
        _CLASSES,
        where=(_choice_fits,),
    ),
    "density.NormalScores": RANKS,
    "density.Reach": Entry(
        {"low": _ROW, "ceiling": c.real(), "unit": c.SIZE}
        | {"width": c.floats("d", least=0, most=_ANY)},
    ),
    "gaussians.GaussianFactor": Entry(
        {
            "mean": _ROW,
            "rest": c.maybe(_ROW),
            "whitener": _WHITENER,
            "log_det": c.real(),
        },
        where=(_factor_is_regular,),
        dropped=frozenset({"in_float32"}),
    ),
    "gaussians.Moments": Entry(
        {
            "weight": c.real(0),
            "origin offset": _ROW,
            "scatter": c.either(_ROW, c.floats("*", "d", most=_ANY)),
            "higher": c.maybe(c.ours("gaussians.HigherMoments", d="cubic")),
        },
        where=(_scatter_fits,),
    ),
    "gaussians.TiedMoments": Entry(
        {
            "weight": c.floats("k", least=0),
            "origin offset": c.floats("k", "d"),
            "within": c.ours("gaussians.Moments", d="origin"),
        },
    ),
    "gaussians.BasisMoments": Entry(
        {
            "centre": _ROW,
            "basis": c.floats("d", "d"),
            "scale": c.floats("d", least=_LEAST),
            "along": c.each(c.ours("gaussians.Moments", d="origin")),
        },
        where=(_each_is_diagonal,),
    ),
    "gaussians.TiedFactors": Entry(
        {
            "mean": c.floats("k", "d"),
            "rest": c.maybe(c.floats("k", "d")),
            "whitener": _WHITENER,
            "log_det": c.real(),
        },
        where=(_factor_is_regular,),
        dropped=frozenset({"comparison"}),
    ),
    "gaussians.BasisFactors": Entry(
        {"mean": c.floats("k", "d"), "variance": c.floats("k", "d", least=_LEAST, most=_ANY)}
        | {"basis": c.floats("d", "d"), "log_det": c.floats("k")},
        dropped=frozenset({"along"}),
    ),
    "gaussians.HigherMoments": Entry(
        {"cubic": c.floats("d", finite=False), "quartic": c.floats("*", finite=False)}
    ),
    "gaussians.ThinWhitener": Entry(
        {"basis": c.floats("r", "d"), "inner": c.floats("r", most=_ANY)}
        | {"outer": c.number(0, _MOST)},
        where=(_variances_are_positive,),
    ),
}
