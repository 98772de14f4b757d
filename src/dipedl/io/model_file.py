"""Save a fitted model to one file without pickle, and load it without running code from the file.

The file is a safetensors container. Arrays are tensors; the manifest (versions, types, plain
values, checksums) is JSON in its metadata. Estimators of scikit-learn, LightGBM and XGBoost are
arrays and plain values too, by exact names of types; an object of any other class asks for trust.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning, NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from ..writing.finding import warn_caller
from ..writing.text import plain_labels
from .container import ModelFileError, read, versions, write
from .values import Decoder, Encoder, is_ours, type_name

__all__ = ["ModelFileError", "UntrustedTypesError", "describe", "load", "save"]

#: What `dipedl.pretrained.DIPModule.save` writes in the place of a type of ours.
_MODULE = "DIPModule"
_PACKAGES = ("numpy", "scipy", "scikit-learn")


class UntrustedTypesError(ModelFileError):
    """A file holds types that are not in the table and that the caller of `load` did not name.

    Attributes
    ----------
    types : list of str
        Their names.
    """

    def __init__(self, path: str | Path, types: list[str]) -> None:
        listed = "\n  ".join(types)
        super().__init__(
            f"{path} holds types that are not trusted:\n  {listed}\nA crafted file could use them "
            "to run code or to crash. If you know where the file comes from and what they are:\n"
            f"  dipedl.load({str(path)!r}, trusted={types})"
        )
        self.types = types


def save(model: Any, path: str | Path) -> None:
    """Write a fitted model to one file, all of it or nothing: no pickle, no code.

    Parameters
    ----------
    model : DIPClassifier, OODDetector, DriftMonitor, or a density of `dipedl.density`
        Fitted.
    path : str or Path
        The file. One that is there already survives any failure.

    Raises
    ------
    NotFittedError
        If the model is not fitted.
    TypeError
        If a part cannot be saved without pickle (a torch module, a lambda); names it.
    OSError
        If the file cannot be written: no permission, no space.

    Examples
    --------
    >>> import os, tempfile
    >>> import dipedl
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = dipedl.DIPClassifier().fit(X, y)
    >>> path = os.path.join(tempfile.mkdtemp(), "model.dipedl")
    >>> dipedl.save(clf, path)
    >>> bool((dipedl.load(path).predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    if not _can_be_saved(model):
        if callable(getattr(model, "save", None)):
            name = type(model).__name__
            raise TypeError(f"a {name} is saved by its own method: call model.save(path)")
        raise TypeError(
            "model must be a DIPClassifier, an OODDetector, a DriftMonitor or a density of "
            f"dipedl.density but FlowDensity, got {type(model).__name__}; save other "
            "scikit-learn estimators with skops.io.dump, and what holds PyTorch with joblib.dump"
        )
    _check_fitted(model)
    getattr(model, "evidence_", None)  # after partial_fit it is learned when it is asked for
    encoder = Encoder()
    manifest, tensors = _encode(model, encoder)
    if manifest["parts"]:
        # What Python would copy by attributes of its own choice must come back as it was.
        again = Decoder(manifest, tensors, _untrusted(manifest)).decode(manifest["root"])
        if _comparable(manifest, tensors) != _comparable(*_encode(again, Encoder())):
            raise TypeError(
                f"{', '.join(manifest['parts'])} cannot be saved without pickle: another object "
                "would be loaded; save it on its own, or without __getstate__ and __setstate__"
            )
    write(Path(path), manifest, tensors)
    if encoder.unchecked:
        causes = "; ".join(f"{name} {why}" for name, why in encoder.unchecked.items())
        warn_caller(
            f"this model has parts that cannot be checked ({causes}): dipedl.load refuses the file "
            f"unless you give trusted={_untrusted(manifest)}"
        )


def load(path: str | Path, *, trusted: Sequence[Any] = ()) -> Any:
    """The model that `save` wrote; its answers are the same to the last bit.

    Every checksum is verified before anything is built, types come from a closed table, and every
    index, shape and bound in it is checked.

    Parameters
    ----------
    path : str or Path
        The file.
    trusted : list of str or type, default=()
        For a file with types of your own: those that you have looked at and trust. `describe`
        lists what is needed; a file of estimators of scikit-learn, LightGBM and XGBoost needs none.

    Raises
    ------
    ModelFileError
        If the file is damaged, not one of ours, from a newer format, or does not fit the installed
        versions; a ValueError.
    UntrustedTypesError
        If the file holds other types than these; shows the call that trusts them. A ModelFileError.
    FileNotFoundError, IsADirectoryError
        If there is no such file, or the path is that of a folder; names it. Like whatever else
        keeps a file from being read, an OSError.

    Warns
    -----
    InconsistentVersionWarning
        If another minor version of scikit-learn wrote the file: all parts fit, but answers may
        differ.
    """
    if not isinstance(trusted, list | tuple | set):
        raise TypeError(
            f"trusted must be a list of types such as describe(path)['untrusted_types'], "
            f"got {trusted!r}"
        )
    manifest, tensors = read(Path(path))
    if manifest.get("type") == _MODULE:
        raise ModelFileError(
            f"{path} holds a DIPModule, which is read around its network: "
            "dipedl.pretrained.DIPModule.load(path, network)"
        )
    try:
        written = str(manifest["versions"]["scikit-learn"])
    except Exception as error:
        raise ModelFileError(f"{path} does not say which scikit-learn wrote it") from error
    names = {t if isinstance(t, str) else f"{t.__module__}.{t.__name__}" for t in trusted}
    if refused := sorted({*_untrusted(manifest)} - names):
        raise UntrustedTypesError(path, refused)
    try:
        model = Decoder(manifest, tensors, names).decode(manifest["root"])
        if not _can_be_saved(model) or type_name(type(model)) != manifest["type"]:
            name = type(model).__name__
            raise ValueError(f"it is a {name}, not the {manifest['type']!r} it says")
        _check_fitted(model)
    # Whatever building makes of forged content, it is the file.
    except Exception as error:
        raise ModelFileError(f"{path} holds no valid model: {_explain(error, written)}") from error
    if not _same_minor(written):
        warnings.warn(
            InconsistentVersionWarning(
                estimator_name=type(model).__name__,
                current_sklearn_version=sklearn.__version__,
                original_sklearn_version=written,
            ),
            stacklevel=2,
        )
    return model


def describe(path: str | Path) -> dict[str, Any]:
    """Describe the content of a file, without building anything: look before you load.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    manifest : dict
        Among others ``"type"``, ``"classes"``, ``"n"`` (training samples), ``"versions"``,
        ``"parts"`` (where they are), and ``"untrusted_types"``: what `load` needs in `trusted`.
    """
    manifest, _ = read(Path(path))
    return manifest | {"untrusted_types": _untrusted(manifest)}


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError:
        raise NotFittedError(
            f"this {type(model).__name__} is not fitted, so there is nothing to save; call fit"
        ) from None


def _encode(model: Any, encoder: Encoder) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return manifest and tensors of a model."""
    root = encoder.encode(model, "")
    classes = getattr(model, "classes_", None)
    evidence = getattr(model, "evidence_", None)
    manifest = {
        "versions": versions(*_PACKAGES),
        "type": type_name(type(model)),
        "classes": None if classes is None else plain_labels(np.asarray(classes)),
        "n": None if evidence is None else evidence.n_,
        "parts": encoder.paths,
        **encoder.contents(),
        "root": root,
    }
    return json.loads(json.dumps(manifest)), encoder.tensors


def _comparable(manifest: dict[str, Any], tensors: dict[str, np.ndarray]) -> Any:
    return manifest, {name: (a.dtype, a.shape, a.tobytes()) for name, a in tensors.items()}


def _untrusted(manifest: dict[str, Any]) -> list[str]:
    """Names of classes and functions in a file beyond the table."""
    try:
        named = [
            o["class" if "class" in o else "named"] for o in manifest["objects"] if "type" not in o
        ]
        return sorted({*map(str, named)})
    except Exception as error:
        raise ModelFileError(f"the manifest of the file lists no objects: {error}") from error


def _can_be_saved(model: Any) -> bool:
    name = type_name(type(model))
    whole = name is not None and (is_ours(name) or type(model) is Pipeline)
    return bool(whole and isinstance(model, BaseEstimator))


def _same_minor(written: str) -> bool:
    return bool(written.split(".")[:2] == sklearn.__version__.split(".")[:2])


def _explain(error: Exception, written: str) -> str:
    if _same_minor(written):
        return str(error)
    return (
        f"{error}; it was saved with scikit-learn {written}, this is {sklearn.__version__}: "
        "install that version, or fit the model again"
    )
