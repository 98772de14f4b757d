"""Types of this library: their attributes, the kinds and shapes of these, and how they fit."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from ..evidence import check_increasing
from ..gaussians.moments import weights_of
from ..held_out import Origin
from ..maths.arrays import on_simplex
from ..protocols import optional
from . import checks as c
from .checks import CLASSES, WIDE, Entry, is_own_type

# Models of this library: classifier, detector, evidence side, normalisers, temperature.

_LEARNED: dict[str, c.Check] = {"n_": c.SIZE, "source_": c.text}
_PLACED = _LEARNED | {"location_": c.real(), "scale_": c.SIZE}
_BOUNDED = _PLACED | {"log_odds_": c.real()}
_ANSWERING: dict[str, c.Check] = {
    "gamma": c.SIZE,
    "max_evidence": c.maybe(c.SIZE),
    "false_alarm_rate": c.RATE,
    "spread": c.maybe(c.one_of("auto")),
}
_EVIDENCE = {"evidence_": c.fitted(c.ours("EvidenceModel"))}
_TRANSFORMER = c.fitted(c.has("transform"))


def _has_knots(ranks: Any, sizes: c.Sizes) -> None:
    c.need(sizes["m"], "have no knots")


RANKS = Entry(
    _LEARNED
    | {"scale_": c.SIZE, "knots_": c.floats("m", order=np.less)}
    | {"normal_scores_": c.floats("m", order=np.less_equal)},
    where=(_has_knots,),
)


def _rows_fit(held: Any, sizes: c.Sizes) -> None:
    scores = held.scores
    c.need(sizes["m"] and (scores[1:] >= scores[:-1]).all(), "have scores that do not ascend")
    for proba in (held.proba, held.bare_proba):
        sound = proba is None or on_simplex(proba).all()
        c.need(sound, "have probabilities that do not add up to 1")
    if held.has_labels:
        labels = held.labels
        known = labels.dtype.kind in "iu" and 0 <= labels.min() <= labels.max() < sizes["k"]
        c.need(known, "have labels of none")
    c.one_of(*get_args(Origin))(held.origin, sizes)


def _is_level(value: Any, sizes: c.Sizes) -> None:
    """Require a plain value that a dict can be asked for."""
    c.plain(value, sizes)
    try:
        hash(value)
    except TypeError as error:
        raise ValueError(f"is a {type(value).__name__}, no level") from error


def _columns_exist(columns: Any, sizes: c.Sizes) -> None:
    numbers = [*columns.levels, *columns.categories]
    c.need(all(n < sizes["d"] for n in numbers), "have levels of a column that there is not")


def _ranges_fit(column: Any, sizes: c.Sizes) -> None:
    c.need((np.diff(column.cuts[1:-1]) > 0).all(), "have cuts that do not rise")
    c.need(len(column.ranges) == max(len(column.cuts) - 1, 0), "have other ranges than cuts")
    c.need(len(column.ranges) == 0 or column.missing < 1, "have numbers in a column of gaps")


def _evidence_fits(evidence: Any, sizes: c.Sizes) -> None:
    """Require held-out rows, prior, density and columns to fit together."""
    held, columns = evidence.held_out_, evidence.columns_
    if held.proba is not None:
        c.need(np.shape(evidence.prior) == held.proba.shape[1:], "have a prior of other classes")
    width = getattr(evidence.density_, "n_features_in_", None)
    if evidence.features_ is None and columns is not None and width is not None:
        c.need(width == len(columns.names), "have a density of another width")
    c.need(np.diff(evidence.sharpening_) > 0, "sharpen from above")
    # A map that overflows is refused for what it gives, without warnings.
    with np.errstate(all="ignore"):
        check_increasing(evidence.normalizer_, held.scores)


def _flagged_are_rows(rehearsal: Any, sizes: c.Sizes) -> None:
    c.need(sizes["c"], "have no class")
    c.need((rehearsal.flagged <= rehearsal.rows[:, None]).all(), "flag more rows than there are")
    compared = rehearsal.flagged_by_candidates
    c.need((compared is None) == (not rehearsal.candidates), "have candidates without numbers")
    if compared is not None:
        c.need((compared <= rehearsal.rows[:, None]).all(), "flag more rows than there are")


def _sample_is_sorted(sample: Any, sizes: c.Sizes) -> None:
    c.need((sample.keys[1:] > sample.keys[:-1]).all(), "have keys that do not rise")
    c.need(set(sample.rows) - {"groups"} in ({"X"}, {"Z", "P"}), "have rows of another kind")
    c.need("P" not in sample.rows or on_simplex(sample.rows["P"]).all(), "have no probabilities")


def _inputs_fit(owner: Any, sizes: c.Sizes) -> None:
    """The evidence is about these classes and columns."""
    stream = vars(owner).get("stream_")
    fits = stream is None or np.shape(stream.totals) == (sizes["k"],)
    c.need(fits, "have rows of other classes")
    if not hasattr(owner, "evidence_"):
        return
    columns, width = owner.evidence_.columns_, getattr(owner, "n_features_in_", None)
    c.need(columns is None or len(columns.names) == width, "have other columns")
    if hasattr(owner, "classes_"):
        c.need(np.shape(owner.evidence_.prior) == (sizes["k"],), "have a prior of other classes")


def _read_table(model: Any) -> None:
    """Let a model that ``dipedl fit`` made of a table take rows of that table."""
    if hasattr(model, "table_"):
        table_model = optional("dipedl.apps.table.table_model", "a model of a table")
        model.encode_rows_ = table_model.encode_rows


_MODELS: dict[str, Entry] = {
    "DIPClassifier": Entry(
        {"classes_": c.labels(), "estimator_": c.fitted(c.model("predict_proba", d="d", k="k"))}
        | _EVIDENCE,
        {
            "stream_": c.ours("streaming.Stream"),
            "unknown_rehearsal_": c.ours("explanation.UnknownRehearsal"),
        },
        parameters=_ANSWERING,
        where=(_inputs_fit,),
        dropped=frozenset({"encode_rows_"}),
        restore=_read_table,
    ),
    "OODDetector": Entry(
        {},
        _EVIDENCE,
        parameters={"estimator": c.maybe(c.model()), "false_alarm_rate": c.maybe(c.RATE)},
        where=(_inputs_fit,),
    ),
    "EvidenceModel": Entry(
        {
            "columns_": c.maybe(c.ours("fitting.InputColumns")),
            "features_ calibrator_": c.maybe(_TRANSFORMER),
            "density_": c.fitted(c.has("score_samples")),
            "normalizer_": _TRANSFORMER,
            "held_out_": c.ours("calibration.HeldOut"),
            "offset_": c.number(most=float(c.LARGEST)),
            "sharpening_": c.fields(c.real(), c.real()),
            "temperature_": c.maybe(c.SIZE),
            "spread_": c.maybe(c.ours("calibration.Spread")),
            "n_": c.SIZE,
        },
        {"row_hashes_": c.values("*", kinds="u"), "memorised_": c.maybe(c.flag)},
        parameters=_ANSWERING | {"prior": c.maybe(c.positive("k"))},
        where=(_evidence_fits,),
    ),
    "calibration.HeldOut": Entry(
        {
            "scores": c.scores("m"),
            "source origin": c.text,
            "weights": c.maybe(c.positive("m")),
            "proba": c.maybe(c.floats("m", "k")),
            "labels": c.maybe(c.values("m")),
            "components": c.maybe(c.floats("m", "*", finite=False)),
            "component_names": c.each(c.text, kind=tuple),
            "bare_proba": c.maybe(c.floats("m", "k")),
        },
        {"design_effect": c.real(1), "Z": c.maybe(c.floats("m", "*"))}
        | {"outliers": c.maybe(c.ours("calibration.HeldOut"))},
        where=(_rows_fit,),
    ),
    "calibration.Spread": Entry(
        {
            "strength_ n_": c.SIZE,
            "error_ variance_": c.number(least=0),
            "rarest_ confidence_": c.SHARE,
            "log_evidence_": c.real(),
            "refitted_": c.flag,
        },
    ),
    "calibration.Temperature": Entry(
        {"temperature_ minimiser_ n_": c.SIZE, "nll_ bare_nll_": c.real()},
    ),
    "evidence.CautionBudget": Entry(
        _BOUNDED | {"exhausted_": c.flag, "full_loss_ lowest_loss_ loss_ allowed_loss_": c.real()},
        parameters={
            "budget": c.SHARE,
            "measure": c.one_of("brier", "nll"),
            "slope": c.SIZE,
            "confidence": c.number(0.5, 1),
        },
    ),
    "evidence.QuantileEvidence": Entry(_BOUNDED, parameters={"quantile": c.RATE, "slope": c.SIZE}),
    "evidence.Identity": Entry(_LEARNED),
    "evidence.RankNormal": RANKS,
    "evidence.RobustZScore": Entry(_PLACED),
    "evidence.ZScore": Entry(_PLACED),
    "explanation.UnknownRehearsal": Entry(
        {
            "classes": c.each(c.text, "c", kind=tuple),
            "rows": c.ints("c", least=1),
            "flagged": c.ints("c", "m", least=0),
            "methods": c.each(c.text, "m", kind=tuple),
            "false_alarm_rate": c.RATE,
            "skipped": c.mapping(c.text, c.count()),
        },
        {"candidates": c.each(c.text, "s", kind=tuple)}
        | {"flagged_by_candidates": c.maybe(c.ints("c", "s", least=0))},
        where=(_flagged_are_rows,),
    ),
    "streaming.Stream": Entry(
        {"density": c.fitted(c.has("score_samples")), "features": c.maybe(_TRANSFORMER)}
        | {"held": c.ours("streaming.RowSample"), "n": c.real(0), "standardised": c.flag}
        | {"totals": c.floats("k", least=0)},
    ),
    "streaming.RowSample": Entry(
        {"keys": c.values("m", kinds="u"), "labels": c.values("m"), "counts": c.positive("m")}
        | {"rows": c.mapping(c.text, c.floats("m", "*")), "most each": c.count()}
        | {"share": c.SHARE},
        where=(_sample_is_sorted,),
    ),
    "fitting.DenseRows": Entry(WIDE),
    "fitting.InputColumns": Entry(
        {
            "names": c.each(c.text, "d"),
            "low high": c.floats("d", finite=False),
            "missing": c.floats("d", least=0, most=np.float64(1)),
            "levels": c.mapping(c.count(), c.mapping(c.plain, c.SHARE)),
            "categories": c.mapping(c.count(), c.each(_is_level)),
            "rows": c.count(),
            "cuts": c.floats("d", 11, finite=False),
            "ranges": c.floats("d", 10, least=0),
        },
        {"dtypes": c.maybe(c.each(c.text, "d"))},  # in files of earlier versions; read by nothing
        where=(_columns_exist,),
    ),
    "fitting.InputColumn": Entry(
        {"name": c.text, "low high": c.number(), "missing": c.SHARE, "rows": c.count()}
        | {"levels": c.maybe(c.mapping(c.plain, c.SHARE)), "categories": c.maybe(c.each(_is_level))}
        | {"cuts": c.floats("*"), "ranges": c.floats("*", least=0)},
        {"dtype": c.maybe(c.text)},
        where=(_ranges_fit,),
    ),
}


# Densities of this library and what they are made of.

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


def _classes_are_complete(density: Any, sizes: c.Sizes) -> None:
    """Only a density of classes that are announced, and without rows, has no factors."""
    complete = bool((weights_of(density.moments_) > 0).all())
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

_DENSITIES: dict[str, Entry] = {
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
    ),
    "density.GaussianMixtureDensity": Entry(
        WIDE | {"scaler_": _SCALER, "mixture_": c.is_a("sklearn.mixture.GaussianMixture", d="d")},
        where=(_scale_is_known,),
    ),
    "density.CustomDensity": Entry(
        WIDE | {"model_": c.fitted(c.has("score_samples", "log_prob"))},
        # A type of PyTorch, which no file holds.
        parameters={"dtype": c.one_of(None)},
    ),
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
        where=(lambda m, sizes: c.need(all(one.scatter.ndim == 1 for one in m.along), "are wide"),),
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
        {"basis": c.floats("r", "d"), "inner": c.floats("r", least=_LEAST, most=_ANY)}
        | {"outer": c.number(_LEAST, _MOST)},
    ),
}


# Transformers of this library.


def _name_lines(lines: Any, sizes: c.Sizes) -> None:
    """Require lines by name or by wavelength."""
    c.need(isinstance(lines, list | tuple | np.ndarray), "must be a list")
    c.need(all(isinstance(line, str | int | float) for line in lines), "must be names or numbers")


def _windows_lie_within(lines: Any, sizes: c.Sizes) -> None:
    first, after = lines.windows_.T
    c.need(len(lines.windows_) == len(lines.lines), "have windows of other lines")
    c.need((first < after).all(), "have a window without a pixel")
    c.need((lines.windows_ <= sizes["d"]).all(), "have windows beyond the pixels")


def _blocks_are_filled(blocks: Any, sizes: c.Sizes) -> None:
    size, number_ = blocks.block_size_, blocks.n_blocks
    c.need(-(-sizes["d"] // size) == number_, "have blocks that do not fill the pixels")


def _window_fits(filter_: Any, sizes: c.Sizes) -> None:
    c.need(sizes["w"] <= sizes["d"], "have a window wider than the pixels")
    # The polynomial is fitted for each answer.
    c.need(filter_.polyorder < min(sizes["w"], 100), "have a polynomial of too high a degree")


_TRANSFORMERS: dict[str, Entry] = {
    "preprocessing.LogitPixels": Entry(
        WIDE, parameters={"levels": c.number(2, 2**53), "lam": c.number(0, 0.5)}
    ),
    "preprocessing.SignedPower": Entry(WIDE, parameters={"exponent": c.number(0, 1)}),
    "spectra.BlockStatistics": Entry(
        WIDE | {"block_size_": c.count(least=1)},
        parameters={"n_blocks": c.count(least=1)},
        where=(_blocks_are_filled,),
    ),
    "spectra.EnergyNormalizer": Entry(WIDE),
    "spectra.LineMeans": Entry(
        WIDE | {"windows_": c.ints("*", 2, least=0)},
        parameters={"lines": _name_lines},
        where=(_windows_lie_within,),
    ),
    "spectra.PrincipalComponents": Entry(
        WIDE
        | {"components_": c.floats("c", "d"), "mean_": c.floats("d")}
        | {"explained_variance_ explained_variance_ratio_": c.floats("c")}
    ),
    "spectra.SavitzkyGolay": Entry(
        WIDE | {"window_": c.count("w", 1)},
        parameters={"polyorder": c.count()},
        where=(_window_fits,),
    ),
}


# The drift monitor, and the counts and sums that it consists of.

_TESTS = {"p_values", "uncertainty", "flagged"}
_COUNTS = c.floats("*", least=0)


def _ranks_fit(ranks: Any, sizes: c.Sizes) -> None:
    c.need(len(ranks.sizes) == len(ranks.cuts) + 1, "have other ranges than cuts")
    c.need((ranks.sizes > 0).all(), "have empty ranges")


def _monitor_fits(monitor: Any, sizes: c.Sizes) -> None:
    """Counts are of the ranges of the reference and of the columns, wealth of its bettors."""
    ranges = len(monitor.reference_.sizes)
    c.need(len(monitor.counts_) == ranges, "have counts of other ranges")
    c.need(len(monitor.open_.ranks) == ranges, "have an open window of other ranges")
    c.need(set(monitor.wealth_) == _TESTS, "have the wealth of other tests")
    c.need(set(monitor.usual_) == set(monitor.gains_) == _TESTS - {"p_values"}, "have other means")
    bettors = len(monitor.wealth_["p_values"].logs) - 1
    c.need(bettors == monitor.reference_.bettors, "have the wealth of other bettors")
    for name, gains in monitor.gains_.items():
        c.need(len(gains) == len(monitor.wealth_[name].logs) - 1, "have the gains of other bettors")
    found = [len(counts) for counts in monitor.open_.columns]
    expected = [len(column.counts) for column in monitor.columns_]
    c.need(found == expected, "have counts of other columns")
    c.need(len(monitor.calibrations_) == 2, "have calibrations of other confidences")


_MONITORING: dict[str, Entry] = {
    "monitoring.DriftMonitor": Entry(
        {
            "model_ source_": c.text,
            "classes_": c.labels(),
            "reference_": c.ours("monitoring.ReferenceRanks"),
            "usual_": c.mapping(c.text, c.SHARE),
            "calibrations_": c.each(c.ours("monitoring.Calibration"), kind=tuple),
            "columns_": c.each(c.ours("fitting.InputColumn"), kind=tuple),
            "rows_ batches_": c.count(),
            "batch_": c.count(least=-1),
            "counts_": _COUNTS,
            "gains_": c.mapping(c.text, c.floats("*")),
            "wealth_": c.mapping(c.text, c.ours("monitoring.Wealth")),
            "sums_": c.ours("monitoring.Sums"),
            "open_": c.ours("monitoring.OpenWindow"),
            "windows_": c.each(c.ours("monitoring.Window")),
        },
        parameters={"false_alarm_rate": c.RATE, "window": c.count(least=1)}
        | {"random_state": c.count()},
        where=(_monitor_fits,),
    ),
    "monitoring.ReferenceRanks": Entry(
        {"cuts": c.floats("c", order=np.less_equal), "ties": c.floats("c", least=0)}
        | {"sizes": c.floats("*"), "both": c.flag},
        where=(_ranks_fit,),
    ),
    "monitoring.Wealth": Entry(
        {"logs": c.floats("*", finite=False), "steps": c.count(), "highest": c.real()}
    ),
    "monitoring.Sums": Entry(
        {"confidence": c.floats(2, 3, least=0), "labelled": c.floats(4, least=0)}
    ),
    "monitoring.OpenWindow": Entry(
        {"ranks": _COUNTS, "sums": c.floats(2, least=0), "columns": c.each(_COUNTS)}
        | {"accuracy": c.ours("monitoring.Sums")},
    ),
    "monitoring.Calibration": Entry(
        {"confidence right": c.floats("m", least=0, most=1, order=np.less_equal)}
        | {"variance": c.real(0)},
        where=(_has_knots,),
    ),
    "monitoring.Estimate": Entry({"value low high": c.real(), "rows": c.count()}),
    "monitoring.Window": Entry(
        {
            "first last": c.count(),
            "distance p_value uncertainty flagged": c.SHARE,
            "differs": c.flag,
            "changed": c.each(c.fields(c.text, c.number()), kind=tuple),
            "estimated_accuracy accuracy": c.maybe(c.ours("monitoring.Estimate")),
            "evidence": c.mapping(c.text, c.real()),
        },
    ),
}


ENTRIES: dict[str, Entry] = {**_MODELS, **_DENSITIES, **_TRANSFORMERS, **_MONITORING}

# Arrays of a `DIPModule` by name, beside its settings and its network.

_EMPTY = c.floats(0)
_DISTANCES: dict[str, c.Check] = {
    "whiteners whitened_means": c.floats("*"),
    "whitener": c.floats("d", "d"),
    "tied_means diagonal_means low_rank_means": c.floats("k", "d"),
    "precision": c.positive("k", "d"),
    "basis": c.floats("k", "r", "d"),
    "projected_means": c.floats("k", "r"),
    "inner": c.positive("k", "r"),
    "outer": c.positive("k"),
    "between": c.floats("k", "k"),
}
_NUMBERS = ("location", "log_odds", "log_full", "offset", "sharp_from", "sharp_in_full")


def _arrays_fit(state: Any, sizes: c.Sizes) -> None:
    """Held-out rows have scores; log-densities, logits and labels as many, or none."""
    rows = {
        name.removeprefix("held_out/"): v for name, v in vars(state).items() if "held_out/" in name
    }
    scores, source, _ = rows.pop("scores"), rows.pop("source"), rows.pop("memorised")
    evidence = rows.pop("evidence")
    c.need(sizes.get("t", 2) > 1, "have one knot")
    c.need(len(evidence) or not len(scores), "have rows without evidence")
    c.need((np.diff(evidence[-2:]) > 0).all(), "sharpen from above")
    lengths = {len(array) for array in rows.values()}
    c.need(lengths <= {0, len(scores)}, "have parts of other rows")
    c.need(len(rows["labels"]) == len(rows["logits"]), "have labels of other rows")
    c.need(source.ndim == 0 or not len(scores), "have rows without a source")


def _strength_counts(state: Any, sizes: c.Sizes) -> None:
    numbers = vars(state).get("head/strength.numbers")
    if numbers is not None and numbers.any():
        positive = len(numbers) > 1 and numbers[0] > 0 and (np.delete(numbers, 1) >= 0).all()
        c.need(positive, "have a strength that is not positive, or a negative share")


MODULE = Entry(
    {
        "density_/origin": c.floats("d"),
        "density_/log_constant": c.floats("k"),
        "density_/log_weights": c.logs("k"),
        "density_/counts": c.ints("k", least=1),
        "head/prior": c.positive("k"),
        "head/temperature head/scale": c.positive(),
        " ".join(f"head/{name}" for name in _NUMBERS): c.floats(),
        "source/layer": c.ints(least=-1),
        "held_out/scores": c.scores("*"),
        "held_out/log_density": c.floats("*", finite=False),
        "held_out/logits": c.either(c.floats("*", "k"), _EMPTY),
        "held_out/labels": c.either(c.ints("*", least=0, below="k"), _EMPTY),
        "held_out/source": c.either(c.ints(least=0, below=4), _EMPTY),
        "held_out/memorised": c.either(c.ints(least=0, below=2), _EMPTY),
        "held_out/evidence": c.either(c.floats(18, finite=False), _EMPTY),
    },
    {f"density_/distance.{n}": check for ns, check in _DISTANCES.items() for n in ns.split()}
    | {"head/strength.numbers": c.floats("*")}
    | {"fusion/scales": c.positive(2)}
    | {"fusion/knots fusion/normal_scores": c.floats(2, "t", order=np.less_equal)},
    where=(_arrays_fit, _strength_counts),
)
