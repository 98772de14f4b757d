"""Models of this library: classifier, detector, evidence side, normalisers, temperature."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np

from ...maths.simplex import on_simplex
from ..checks import (
    LARGEST,
    SHARE,
    SIZE,
    Check,
    Sizes,
    count,
    each,
    fields,
    flag,
    floats,
    labels,
    mapping,
    maybe,
    need,
    number,
    one_of,
    plain,
    positive,
    real,
    text,
    values,
)
from ..objects import fitted, has, loaded, model, ours
from .entry import Entry

_LEARNED: dict[str, Check] = {"n_": SIZE, "source_": text}
_PLACED = _LEARNED | {"location_": real(), "scale_": SIZE}
_BOUNDED = _PLACED | {"log_odds_": real()}
_LOSSES = ("full_loss_", "lowest_loss_", "loss_", "allowed_loss_")
_ANSWERING: dict[str, Check] = {
    "gamma": SIZE,
    "max_evidence": maybe(SIZE),
    "false_alarm_rate": maybe(SHARE),
}


def _ranks_rise(ranks: Any, sizes: Sizes) -> None:
    need(sizes["m"], "have no knots")
    need((np.diff(ranks.knots_) > 0).all(), "have knots that do not rise")
    need((np.diff(ranks.normal_scores_) >= 0).all(), "have normal scores that fall")


RANKS = Entry(
    _LEARNED | {"scale_": SIZE, "knots_": floats("m"), "normal_scores_": floats("m")},
    where=(_ranks_rise,),
)


def _rows_fit(held: Any, sizes: Sizes) -> None:
    scores, proba = held.scores, held.proba
    need(not (np.isnan(scores) | (scores == np.inf)).any(), "have scores that are NaN or infinite")
    need(sizes["m"] and (scores[1:] >= scores[:-1]).all(), "have scores that do not ascend")
    need(proba is None or on_simplex(proba).all(), "have probabilities that do not add up to 1")
    if held.labelled:
        kind, labels = held.labels.dtype.kind, held.labels
        need(kind in "iu" and 0 <= labels.min() <= labels.max() < sizes["k"], "have labels of none")
    origins = get_args(loaded("dipedl.calibration.held_out.Origin"))
    one_of(*origins)(held.origin, sizes)


def _columns_exist(columns: Any, sizes: Sizes) -> None:
    need((columns.missing <= 1).all(), "are missing more often than always")
    numbers = [*columns.levels, *columns.categories]
    need(all(n < sizes["d"] for n in numbers), "have levels of a column that there is not")


def _evidence_fits(evidence: Any, sizes: Sizes) -> None:
    """What was learned from held-out rows fits the prior, the density and the columns."""
    held, columns = evidence.held_out_, evidence.columns_
    if held.proba is not None:
        need(np.shape(evidence.prior) == held.proba.shape[1:], "have a prior of other classes")
    width = getattr(evidence.density_, "n_features_in_", None)
    if evidence.features_ is None and columns is not None and width is not None:
        need(width == len(columns.names), "have a density of another width")
    kind = getattr(evidence.calibrator_, "kind_", "probabilities")
    need(kind == "probabilities", "have a calibrator of logits")
    need(np.diff(evidence.sharpening_) > 0, "sharpen from above")
    # A map that overflows is refused for what it gives, without warnings.
    with np.errstate(all="ignore"):
        loaded("dipedl.evidence.monotone.check_increasing")(evidence.normalizer_, held.scores)


def _inputs_fit(owner: Any, sizes: Sizes) -> None:
    """The evidence is about these classes and columns."""
    if not hasattr(owner, "evidence_"):
        return
    columns = owner.evidence_.columns_
    need(columns is None or len(columns.names) == sizes.get("d"), "have other columns")
    if hasattr(owner, "classes_"):
        need(np.shape(owner.evidence_.prior) == (sizes["k"],), "have a prior of other classes")


ENTRIES: dict[str, Entry] = {
    "DIPClassifier": Entry(
        {
            "classes_": labels(),
            "estimator_": fitted(model(d="d", k="k")),
            "evidence_": fitted(ours("EvidenceModel")),
        },
        parameters=_ANSWERING,
        where=(_inputs_fit,),
    ),
    "OODDetector": Entry(
        {},
        {"evidence_": fitted(ours("EvidenceModel"))},
        parameters={"estimator": maybe(model()), "false_alarm_rate": maybe(SHARE)},
        where=(_inputs_fit,),
    ),
    "EvidenceModel": Entry(
        {
            "columns_": maybe(ours("InputColumns")),
            "features_": maybe(fitted(has("transform"))),
            "density_": fitted(has("score_samples")),
            "normalizer_": fitted(has("transform")),
            "calibrator_": maybe(fitted(has("transform"))),
            "held_out_": ours("HeldOut"),
            "offset_": number(most=float(LARGEST)),
            "sharpening_": fields(real(), real()),
            "n_": SIZE,
        },
        {"row_hashes_": values("*", kinds="u"), "memorised_": maybe(flag)},
        parameters=_ANSWERING | {"prior": maybe(positive("k"))},
        where=(_evidence_fits,),
    ),
    "calibration.HeldOut": Entry(
        {
            "scores": floats("m", finite=False),
            "source": text,
            "weights": maybe(positive("m")),
            "proba": maybe(floats("m", "k")),
            "labels": maybe(values("m")),
            "components": maybe(floats("m", "*", finite=False)),
            "component_names": each(text, kind=tuple),
            "origin": text,
        },
        where=(_rows_fit,),
        bare=True,
    ),
    "calibration.Temperature": Entry(
        {"temperature_": SIZE, "minimiser_": SIZE, "n_": SIZE}
        | {"kind_": one_of("probabilities", "logits"), "nll_": real(), "bare_nll_": real()}
    ),
    "evidence.CautionBudget": Entry(
        _BOUNDED | {"exhausted_": flag} | dict.fromkeys(_LOSSES, real()),
        parameters={
            "budget": SHARE,
            "measure": one_of("brier", "nll", "accuracy"),
            "slope": SIZE,
            "confidence": number(0.5, 1),
        },
    ),
    "evidence.QuantileEvidence": Entry(_BOUNDED, parameters={"quantile": SHARE, "slope": SIZE}),
    "evidence.NatPNBudget": Entry(
        _LEARNED | {"log_budget_": real(), "log_full_": real()},
        parameters={"limit": number(least=0)},
    ),
    "evidence.Identity": Entry(_LEARNED),
    "evidence.RankNormal": RANKS,
    "evidence.RobustZScore": Entry(_PLACED),
    "evidence.ZScore": Entry(_PLACED),
    "fitting.DenseRows": Entry({"n_features_in_": count("d", 1)}),
    "fitting.InputColumns": Entry(
        {
            "names": each(text, "d"),
            "low": floats("d", finite=False),
            "high": floats("d", finite=False),
            "missing": floats("d", least=0),
            "levels": mapping(count(), mapping(plain, SHARE)),
            "categories": mapping(count(), each(plain)),
        },
        where=(_columns_exist,),
        bare=True,
    ),
}
