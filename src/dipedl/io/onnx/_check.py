"""Kinds and parts of fitted models, and a graph in onnxruntime beside its model."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from ..checks import is_type

#: Models that can be exported, by the module that defines them.
_MODELS = {
    "DIPClassifier": "dipedl.classifier",
    "OODDetector": "dipedl.detector",
    "DIPModule": "dipedl.pretrained.dip_module",
}


def kind_of(model: Any) -> str | None:
    """Return the name of the class in `_MODELS` that `model` is an instance of, or None."""
    bases = type(model).__mro__
    return next(
        (n for n, home in _MODELS.items() if any(is_type(base, f"{home}.{n}") for base in bases)),
        None,
    )


def unfrozen(estimator: Any) -> Any:
    """Return the estimator inside a `FrozenEstimator`, or the estimator itself."""
    return unfrozen(estimator.estimator) if isinstance(estimator, FrozenEstimator) else estimator


def evidence_owner(model: Any) -> Any:
    """Return the fitted model that holds the evidence: `model`, or the classifier inside."""
    return model if hasattr(model, "evidence_") else unfrozen(model.estimator)


def is_network(estimator: Any) -> bool:
    """Return whether a classifier or transformer is a network of `dipedl.networks`."""
    return _network(unfrozen(estimator)) is not None


def is_shared(classifier: Any, features: Any) -> bool:
    """Return whether features and classifier are the same network."""
    mine, theirs = (_network(unfrozen(e)) for e in (classifier, features))
    return mine is not None and theirs is not None and mine.module_ is theirs.module_


def _network(estimator: Any) -> Any:
    """Return the fitted network estimator behind a classifier or features; None without one."""
    if not hasattr(getattr(estimator, "estimator_", estimator), "apply_network"):
        return None
    from ...networks.layer_features import LayerFeatures
    from ...networks.torch_classifier import TorchEstimator

    if isinstance(estimator, LayerFeatures):
        return estimator.estimator_
    return estimator if isinstance(estimator, TorchEstimator) else None


#: Largest difference between graph and model, for float64 and behind a network in float32.
_TOLERANCE, _NETWORK_TOLERANCE = 1e-5, 1e-3
_SYNTHETIC = 64


def check_rows(model: Any, example: Any, dtype: np.dtype) -> np.ndarray:
    """Inputs (m, d) that the model accepts, rounded to `dtype`, as float64; else an error."""
    _refuse_text(evidence_owner(model))
    if example is not None:
        rows = _numeric(example, evidence_owner(model).n_features_in_)
        rows = rows.astype(dtype).astype(np.float64)
        _expected(model, rows)
        return rows
    refusals = []
    for made in _synthetic(model):
        rows = made.astype(dtype).astype(np.float64)
        try:
            _expected(model, rows)
        except (ValueError, TypeError) as error:
            refusals.append(str(error))
        else:
            return rows
    raise ValueError(
        "the model refuses the synthetic inputs that its graph would be checked on, so give some "
        "real ones, all numbers, as the graph takes no text: export_onnx(model, path, "
        f"example=X[:100]). Its error: {refusals[0]}"
    )


def _refuse_text(owner: Any) -> None:
    columns = owner.evidence_.columns_
    levels = [] if columns is None else columns.text_columns()
    if levels or not hasattr(owner, "n_features_in_"):
        raise TypeError(
            "X must hold numbers, as a graph takes no text, and "
            f"{f'has text or categories in the columns {levels}' if levels else 'holds texts'}; "
            "encode it before the model, as Pipeline([('prepare', ...), ('model', "
            "DIPClassifier())]) does, and export the last step"
        )


def check_agreement(proto: Any, model: Any, rows: np.ndarray) -> None:
    """Raise ValueError unless graph and model agree on rows (m, d)."""
    run = session(proto)
    kind = np.float64 if "double" in run.get_inputs()[0].type else np.float32
    names = [output.name for output in run.get_outputs()]
    found = dict(zip(names, run.run(names, {"X": rows.astype(kind)}), strict=True))
    known = _expected(model, rows)
    owner = evidence_owner(model)
    parts = owner.evidence_.features_, getattr(owner, "estimator_", None)
    tolerance = _NETWORK_TOLERANCE if any(map(is_network, parts)) else _TOLERANCE
    for name, right in known.items():
        require_equal(name, np.asarray(found[name], np.float64), right, tolerance, model)


def _numeric(example: Any, width: int) -> np.ndarray:
    try:
        rows = np.asarray(example, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            "example must hold numbers, for the graph has one numeric input X (n, d); encode text "
            f"and categories before the model: {error}"
        ) from error
    if rows.ndim != 2 or rows.shape[1] != width or not len(rows):
        raise ValueError(f"example must have shape (m, {width}) with m >= 1, got {rows.shape}")
    return rows


def _synthetic(model: Any) -> list[np.ndarray]:
    """Sets of inputs, near the data or pixels; the first one that the model accepts is used."""
    rng, d = np.random.default_rng(0), evidence_owner(model).n_features_in_
    noise = rng.normal(size=(_SYNTHETIC, d)) * np.repeat([1, 3, 10, 1e3], _SYNTHETIC // 4)[:, None]
    center, spread = _location(model, d)
    return [center + spread * noise, rng.uniform(size=(_SYNTHETIC, d))]


def _location(model: Any, d: int) -> tuple[Any, Any]:
    """Mean and spread of the training inputs, if the features store them; else 0 and 1."""
    features = evidence_owner(model).evidence_.features_
    scaler = features[0] if hasattr(features, "steps") else features
    mean, scale = getattr(scaler, "mean_", None), getattr(scaler, "scale_", None)
    fits = mean is not None and scale is not None and len(mean) == len(scale) == d
    return (mean, scale) if fits else (0.0, 1.0)


def _expected(model: Any, rows: np.ndarray) -> dict[str, np.ndarray]:
    """Expected outputs of the graph for rows (m, d); NaN where either flag is allowed."""
    X = _as_fitted(model, rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores, offset = model.score_samples(X), model.offset_
        # At the threshold, where rows of an in-sample fit may be, the last bit decides.
        near = np.abs(scores - offset) <= _TOLERANCE * np.maximum(1.0, np.abs(scores))
        flags = {"ood": np.where(near, np.nan, scores < offset)}
        if not hasattr(model, "predict_dirichlet"):
            return {"score": scores, **flags}
        answer = model.predict_dirichlet(X)
    names = {"probabilities": "mean", "vacuity": "vacuity", "log_evidence": "log_evidence"}
    names |= {"strength": "strength"} if getattr(model, "spread_", None) is not None else {}
    return {name: np.asarray(getattr(answer, of)) for name, of in names.items()} | flags


def _as_fitted(model: Any, rows: np.ndarray) -> Any:
    """Rows as a DataFrame where the model was fitted with one."""
    names = getattr(evidence_owner(model), "feature_names_in_", None)
    if names is None:
        return rows
    try:
        import pandas as pd
    except ImportError:
        # Names are not checked then; a transformer that needs them raises an error.
        return rows
    return pd.DataFrame(rows, columns=names)


def session(model: Any) -> Any:
    """An onnxruntime session of a model, on the CPU."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # Errors are raised; its warnings concern the graph optimiser only.
    options.log_severity_level = 4
    providers = ["CPUExecutionProvider"]
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=providers)


def require_equal(
    name: str, found: np.ndarray, right: np.ndarray, tolerance: float, model: Any
) -> None:
    """Raise ValueError unless an output of the graph is that of the model; NaN there is skipped.

    The difference is relative where an entry is above one.
    """
    big = np.finfo(np.float32).max
    found, right = (np.clip(a, -big, big) for a in (found, right))
    gap = np.abs(found - right) / np.maximum(np.abs(right), 1.0)
    gap = np.where(np.isnan(gap), np.inf, gap)
    gap = np.where(np.isnan(right), 0.0, gap).reshape(len(right), -1).max(axis=1)
    row = int(gap.argmax())
    if not gap[row] <= tolerance:
        raise ValueError(
            f"the graph disagrees with the model: {name} of row {row} that it was checked on is "
            f"{found[row]} in the graph and {right[row]} in the model (difference {gap[row]:.2g}, "
            f"allowed {tolerance:g}); nothing was written. Please report it with {model}"
        )
