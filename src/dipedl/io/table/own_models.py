"""Models of this library: classifier, detector, evidence side, normalisers, temperature."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from ...maths.arrays import on_simplex
from .. import checks as c
from .entry import WIDE, Entry

_LEARNED: dict[str, c.Check] = {"n_": c.SIZE, "source_": c.text}
_PLACED = _LEARNED | {"location_": c.real(), "scale_": c.SIZE}
_BOUNDED = _PLACED | {"log_odds_": c.real()}
_ANSWERING: dict[str, c.Check] = {
    "gamma": c.SIZE,
    "max_evidence": c.maybe(c.SIZE),
    "false_alarm_rate": c.RATE,
}
_EVIDENCE = {"evidence_": c.fitted(c.ours("EvidenceModel"))}
_TRANSFORMER = c.fitted(c.has("transform"))


def _ranks_rise(ranks: Any, sizes: c.Sizes) -> None:
    c.need(sizes["m"], "have no knots")
    c.need((np.diff(ranks.knots_) > 0).all(), "have knots that do not rise")
    c.need((np.diff(ranks.normal_scores_) >= 0).all(), "have normal scores that fall")


RANKS = Entry(
    _LEARNED | {"scale_": c.SIZE, "knots_ normal_scores_": c.floats("m")},
    where=(_ranks_rise,),
)


def _rows_fit(held: Any, sizes: c.Sizes) -> None:
    scores = held.scores
    c.need(sizes["m"] and (scores[1:] >= scores[:-1]).all(), "have scores that do not ascend")
    for proba in (held.proba, held.bare_proba):
        sound = proba is None or on_simplex(proba).all()
        c.need(sound, "have probabilities that do not add up to 1")
    if held.labelled:
        labels = held.labels
        known = labels.dtype.kind in "iu" and 0 <= labels.min() <= labels.max() < sizes["k"]
        c.need(known, "have labels of none")
    from ...held_out import Origin

    c.one_of(*get_args(Origin))(held.origin, sizes)


def _columns_exist(columns: Any, sizes: c.Sizes) -> None:
    numbers = [*columns.levels, *columns.categories]
    c.need(all(n < sizes["d"] for n in numbers), "have levels of a column that there is not")


def _evidence_fits(evidence: Any, sizes: c.Sizes) -> None:
    """Require held-out rows, prior, density and columns to fit together."""
    held, columns = evidence.held_out_, evidence.columns_
    if held.proba is not None:
        c.need(np.shape(evidence.prior) == held.proba.shape[1:], "have a prior of other classes")
    width = getattr(evidence.density_, "n_features_in_", None)
    if evidence.features_ is None and columns is not None and width is not None:
        c.need(width == len(columns.names), "have a density of another width")
    c.need(np.diff(evidence.sharpening_) > 0, "sharpen from above")
    from ...evidence import check_increasing

    # A map that overflows is refused for what it gives, without warnings.
    with np.errstate(all="ignore"):
        check_increasing(evidence.normalizer_, held.scores)


def _sample_is_sorted(sample: Any, sizes: c.Sizes) -> None:
    c.need((sample.keys[1:] > sample.keys[:-1]).all(), "have keys that do not rise")
    c.need(set(sample.rows) in ({"X"}, {"Z", "P"}), "have rows of another kind")
    c.need("P" not in sample.rows or on_simplex(sample.rows["P"]).all(), "have no probabilities")


def _inputs_fit(owner: Any, sizes: c.Sizes) -> None:
    """The evidence is about these classes and columns."""
    if not hasattr(owner, "evidence_"):
        return
    columns, width = owner.evidence_.columns_, getattr(owner, "n_features_in_", None)
    c.need(columns is None or len(columns.names) == width, "have other columns")
    if hasattr(owner, "classes_"):
        c.need(np.shape(owner.evidence_.prior) == (sizes["k"],), "have a prior of other classes")


ENTRIES: dict[str, Entry] = {
    "DIPClassifier": Entry(
        {"classes_": c.labels(), "estimator_": c.fitted(c.model(d="d", k="k"))} | _EVIDENCE,
        {"stream_": c.ours("streaming.Stream"), "spread_": c.maybe(c.fitted(c.has("strength")))},
        parameters=_ANSWERING,
        where=(_inputs_fit,),
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
        },
        {"bare_proba": c.maybe(c.floats("m", "k"))},
        where=(_rows_fit,),
    ),
    "calibration.Rehearsal": Entry(
        {
            "strength_ n_": c.SIZE,
            "error_": c.number(least=0),
            "rarest_ confidence_": c.SHARE,
            "log_evidence_": c.real(),
            "shares_": c.mapping(c.text, c.SHARE),
            "refits_": c.count(),
        },
    ),
    "calibration.Temperature": Entry(
        {"temperature_ minimiser_ n_": c.SIZE, "nll_ bare_nll_": c.real()},
        gone=frozenset({"bounds", "kind_"}),
    ),
    "evidence.CautionBudget": Entry(
        _BOUNDED | {"exhausted_": c.flag, "full_loss_ lowest_loss_ loss_ allowed_loss_": c.real()},
        parameters={
            "budget": c.SHARE,
            "measure": c.one_of("brier", "nll", "accuracy"),
            "slope": c.SIZE,
            "confidence": c.number(0.5, 1),
        },
    ),
    "evidence.QuantileEvidence": Entry(_BOUNDED, parameters={"quantile": c.RATE, "slope": c.SIZE}),
    "evidence.Identity": Entry(_LEARNED),
    "evidence.RankNormal": RANKS,
    "evidence.RobustZScore": Entry(_PLACED),
    "evidence.ZScore": Entry(_PLACED),
    "streaming.Stream": Entry(
        {"density": c.fitted(c.has("score_samples")), "features": c.maybe(_TRANSFORMER)}
        | {"held": c.ours("streaming.RowSample"), "n": c.real(0), "standardised": c.flag},
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
            "categories": c.mapping(c.count(), c.each(c.plain)),
        },
        {"dtypes": c.maybe(c.each(c.text, "d"))},
        where=(_columns_exist,),
    ),
}
