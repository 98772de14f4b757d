"""A fitted model as one ONNX file."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._version import __version__
from ...maths.arrays import check_choice, check_integer
from ...protocols import explain_missing
from ...writing.files import writable_target, write_file
from ...writing.text import plain_labels
from ._check import check_agreement, check_rows, evidence_owner, kind_of, unfrozen

if TYPE_CHECKING:
    from onnx import ModelProto

__all__ = ["export_onnx"]

#: Version of the names and meanings of outputs and metadata.
FORMAT = 1
_OLDEST_OPSET = 18
_DTYPES = ("float32", "float64")
_MEANING = {
    "probabilities": "posterior mean of each class, (n, k), in the order of classes",
    "vacuity": "share of the prior, in (0, 1], (n,); higher is less sure",
    "log_evidence": "log of the pseudo-count beyond the prior, in nats, (n,); -inf is none",
    "strength": "total concentration by the fitted spread, (n,); times probabilities, Beta's a",
    "score": "score, (n,); higher is more typical",
    "ood": "true where the score lies below the threshold, (n,)",
}


def export_onnx(
    model: Any,
    path: str | os.PathLike[str],
    *,
    example: Any = None,
    opset: int = _OLDEST_OPSET,
    dtype: str | None = None,
    max_constant_mb: float = 64.0,
) -> None:
    """Write classifier, calibrator, features, density, normaliser and threshold as one graph.

    The outputs of a `DIPClassifier` or `DIPModule` are "probabilities" (n, k), the posterior mean;
    "vacuity" (n,); "log_evidence" (n,), -inf where there is none; and "ood" (n,), true where
    ``predict_ood`` gives -1; with a fitted ``spread`` also "strength" (n,), the sum of the
    concentrations, which are "probabilities" times that. Those of an `OODDetector` are "score" (n,)
    and "ood". The input of both is "X" (n, d), of any number of rows; a `DIPModule` has those of
    its network's ``forward``.

    Parameters
    ----------
    model : DIPClassifier, OODDetector or DIPModule
        Fitted.
    path : str or path
        The file to write, completely or not at all.
    example : array-like (m, d), or a batch for the network of a DIPModule, optional
        Inputs to check the graph on; real ones check more. Needed for a `DIPModule`, and if
        the model refuses the synthetic inputs used by default.
    opset : int, default=18
        ONNX operator set, 18 or newer.
    dtype : {"float64", "float32"}, optional
        Type of input and outputs, "float64" unless given; the arithmetic between is in float64,
        save for that of networks. A `DIPModule` keeps its own types.
    max_constant_mb : float, default=64.0
        Largest size of training rows in the graph, in megabytes, for densities that keep them.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If a part of it cannot be exported: the error names the part and a replacement.
    ValueError
        If a parameter is out of range, training rows take more than `max_constant_mb`, or graph and
        model disagree.
    OSError
        If the file cannot be written; an existing file remains.
    ImportError
        If a package is missing; names the extra.

    Notes
    -----
    The graph is checked in onnxruntime before it is written: it must agree with the model to 1e-5
    (1e-3 behind a network in float32), relative where log-evidence is large.

    With float32 inputs the graph's outputs are those of the model for the same numbers in float64.
    The model refuses an input whose features are not finite, with an error; a graph cannot, and
    gives the prior for it, vacuity 1, log-evidence -inf and ood true.

    What exports is listed in the documentation, page "ONNX". Metadata of the file
    (``metadata_props``): ``dipedl_version``, ``format_version``, ``model``, ``classes``, ``n``
    (training rows), ``prior``, ``gamma``, ``max_evidence``, ``threshold``, ``false_alarm_rate``,
    ``density``, ``feature_names`` and ``outputs``, values as JSON.

    References
    ----------
    Bai, Lu, Zhang et al., "ONNX: Open Neural Network Exchange", https://onnx.ai.

    Examples
    --------
    >>> import tempfile, onnxruntime
    >>> from sklearn.datasets import load_iris
    >>> from dipedl import DIPClassifier
    >>> from dipedl.density import GDADensity
    >>> from dipedl.io.onnx import export_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = DIPClassifier(density=GDADensity()).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_onnx(clf, f"{folder}/iris.onnx")
    ...     session = onnxruntime.InferenceSession(f"{folder}/iris.onnx")
    >>> ood, vacuity = session.run(["ood", "vacuity"], {"X": [[5.0, 3.4, 1.5, 0.2], [50.0] * 4]})
    >>> ood, vacuity.round(1)
    (array([False,  True]), array([0., 1.]))
    """
    writable_target(path)  # before the work starts
    model = unfrozen(model)
    check_integer("opset", opset, _OLDEST_OPSET)
    if dtype is not None:
        check_choice("dtype", dtype, _DTYPES)
    if not max_constant_mb > 0:
        raise ValueError(f"max_constant_mb must be > 0, got {max_constant_mb!r}")
    try:
        import onnx

        if hasattr(model, "named_parameters"):
            proto = _module_graph(model, example, opset, dtype)
        else:
            proto = _estimator_graph(model, example, opset, dtype or "float64", max_constant_mb)
    except ImportError as error:
        raise explain_missing(error, "export_onnx") from error
    _describe(proto, _facts(model))
    data = proto.SerializeToString()
    onnx.checker.check_model(data, full_check=False)
    write_file(path, data)


def _estimator_graph(
    model: Any, example: Any, opset: int, dtype: str, max_constant_mb: float
) -> ModelProto:
    if kind_of(model) not in ("DIPClassifier", "OODDetector"):
        raise TypeError(
            "model must be a fitted DIPClassifier, OODDetector or DIPModule, got "
            f"{type(model).__name__}; another classifier becomes one by "
            "DIPClassifier(FrozenEstimator(model)).fit(X, y)"
        )
    check_is_fitted(model)
    from ._model import model_graph

    rows = check_rows(model, example, np.dtype(dtype))
    proto: ModelProto = model_graph(
        model, rows, opset=opset, dtype=np.dtype(dtype), max_constant_mb=max_constant_mb
    )
    check_agreement(proto, model, rows)
    return proto


def _facts(model: Any) -> dict[str, Any]:
    """Return the metadata of a model, beside its outputs."""
    module, detector = (kind_of(model) == kind for kind in ("DIPModule", "OODDetector"))
    known = model if module else evidence_owner(model)
    learned = model if module else known.evidence_
    settings = model.head.settings if module else learned
    rate = model.false_alarm_rate if detector else None
    density = unfrozen(learned.density_)
    choice = getattr(density, "choice_", None)
    facts = {
        "model": type(model).__name__,
        "n": learned.n_,
        "density": type(density).__name__ + (f": {choice}" if choice else ""),
        "false_alarm_rate": settings.false_alarm_rate if rate is None else rate,
        "threshold": model.offset_,
    }
    if not module:
        facts["feature_names"] = list(getattr(known, "feature_names_in_", []))
    if not detector:
        facts["classes"] = plain_labels(model.classes_)
        facts["prior"] = (model.head if module else learned).prior.tolist()
        facts |= {"gamma": settings.gamma, "max_evidence": settings.max_evidence}
    return facts


def _module_graph(model: Any, example: Any, opset: int, dtype: str | None) -> ModelProto:
    if kind_of(model) != "DIPModule":
        raise TypeError(
            f"model must be a fitted DIPClassifier, OODDetector or DIPModule, got the network "
            f"{type(model).__name__}; wrap it: DIPModule(network).fit_density(loader)"
        )
    if example is None:
        raise ValueError("example is needed for a DIPModule: one batch as its network takes it")
    if dtype is not None:
        raise ValueError(
            f"dtype must be None for a DIPModule, got {dtype!r}: the types of the graph are those "
            "of the example and of the module; use module.double() for float64"
        )
    from ._torch import torch_graph

    proto: ModelProto = torch_graph(model, example, opset=opset)
    return proto


def _describe(proto: ModelProto, facts: dict[str, Any]) -> None:
    """Write facts and the meaning of the outputs into the metadata."""
    from onnx.helper import set_model_props

    outputs = {output.name: _MEANING[output.name] for output in proto.graph.output}
    values = {"format_version": FORMAT, **facts, "outputs": outputs}
    texts = {name: json.dumps(value) for name, value in values.items()}
    set_model_props(proto, {"dipedl_version": __version__, **texts})
