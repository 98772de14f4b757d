"""Save a fitted model to one file without pickle, and load it without running code from the file.

The file is a safetensors container. Arrays are tensors; the manifest (versions, types, plain
values, checksums) is JSON in its metadata; estimators that are not ours are one skops archive,
held as a tensor of bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import sklearn
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from ._types import type_name
from .codec import Decoder, Encoder, is_own
from .container import DAMAGE, read, versions, write
from .skops_parts import dump_parts, load_parts, untrusted_types

__all__ = ["UntrustedTypesError", "describe", "load", "save"]

_PARTS = "skops"
#: What `dipedl.pretrained.DIPModule.save` writes in the place of a type of ours.
_MODULE = "DIPModule"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "skops")


class UntrustedTypesError(ValueError):
    """A file holds types that neither skops nor the caller of `load` trusts.

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
    model : DIPClassifier, OODDetector, or a density of `dipedl.density`
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
    if not (is_own(model) and isinstance(model, BaseEstimator)):
        raise TypeError(
            "model must be a DIPClassifier, an OODDetector or a density of dipedl.density, got "
            f"{type(model).__name__}; save other scikit-learn estimators with skops.io.dump"
        )
    _check_fitted(model)
    encoder = Encoder()
    root = encoder.encode(model, "")
    tensors = dict(encoder.tensors)
    if encoder.parts:
        tensors[_PARTS] = np.frombuffer(dump_parts(encoder.parts, encoder.paths), np.uint8)
    write(Path(path), _manifest(model, encoder) | {"root": root}, tensors)


def load(
    path: str | Path, *, trusted: Sequence[Any] = (), allow_version_mismatch: bool = False
) -> Any:
    """The model that `save` wrote; its answers are the same to the last bit.

    Every checksum is verified before anything is built, types come from a closed table, and other
    estimators are rebuilt by skops from the types that it or you trust.

    Parameters
    ----------
    path : str or Path
        The file.
    trusted : list of str or type, default=()
        Types in the file that you have looked at and trust; `describe` lists them.
    allow_version_mismatch : bool, default=False
        Load even if another scikit-learn version wrote the file: answers may differ.

    Raises
    ------
    UntrustedTypesError
        If the file holds other types than these; shows the call that trusts them.
    ValueError
        If the file is damaged, not one of ours, from a newer format, or from another scikit-learn.
    """
    if not isinstance(trusted, list | tuple | set):
        raise TypeError(
            f"trusted must be a list of types such as describe(path)['untrusted_types'], "
            f"got {trusted!r}"
        )
    manifest, tensors = read(Path(path))
    if manifest.get("type") == _MODULE:
        raise ValueError(
            f"{path} holds a DIPModule, which is read around its network: "
            "dipedl.pretrained.DIPModule.load(path, network)"
        )
    _check_scikit_learn(path, manifest, allow_version_mismatch)
    parts = _load_parts(path, tensors, trusted)
    try:
        return Decoder(manifest["objects"], tensors, parts).decode(manifest["root"])
    except DAMAGE as error:
        raise ValueError(f"{path} holds no valid model: {error}") from error


def describe(path: str | Path) -> dict[str, Any]:
    """What a file holds, without building anything: look before you load.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    manifest : dict
        Among others ``"type"``, ``"classes"``, ``"n"`` (training samples), ``"versions"``,
        ``"parts"`` (what skops holds), and ``"untrusted_types"``: what `load` needs in `trusted`.
    """
    manifest, tensors = read(Path(path))
    return manifest | {"untrusted_types": _untrusted(path, tensors)}


def _check_fitted(model: Any) -> None:
    try:
        check_is_fitted(model)
    except NotFittedError as error:
        raise NotFittedError(
            f"this {type(model).__name__} is not fitted, so there is nothing to save; call fit"
        ) from error


def _manifest(model: Any, encoder: Encoder) -> dict[str, Any]:
    classes = getattr(model, "classes_", None)
    evidence = getattr(model, "evidence_", None)
    return {
        "versions": versions(*_PACKAGES),
        "type": type_name(type(model)),
        "classes": None if classes is None else _labels(classes),
        "n": None if evidence is None else evidence.n_,
        "objects": encoder.objects,
        "parts": encoder.paths,
    }


def _labels(classes: np.ndarray) -> list[Any]:
    return [
        c if type(c) in (bool, int, float, str) else str(c) for c in np.asarray(classes).tolist()
    ]


def _check_scikit_learn(path: str | Path, manifest: dict[str, Any], allowed: bool) -> None:
    try:
        theirs, ours = str(manifest["versions"]["scikit-learn"]), sklearn.__version__
    except DAMAGE as error:
        raise ValueError(f"{path} does not say which scikit-learn wrote it") from error
    if theirs.split(".")[:2] != ours.split(".")[:2] and not allowed:
        raise ValueError(
            f"{path} was saved with scikit-learn {theirs}, this is {ours}, and fitted estimators "
            "are not made to be carried over; install that version, refit, or accept that answers "
            "may differ: load(path, allow_version_mismatch=True)"
        )


def _untrusted(path: str | Path, tensors: dict[str, np.ndarray]) -> list[str]:
    if _PARTS not in tensors:
        return []
    try:
        return untrusted_types(tensors[_PARTS].tobytes())
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"{path}: its skops archive cannot be read: {error}") from error


def _load_parts(
    path: str | Path, tensors: dict[str, np.ndarray], trusted: Sequence[Any]
) -> list[Any]:
    names = {t if isinstance(t, str) else f"{t.__module__}.{t.__name__}" for t in trusted}
    refused = sorted(set(_untrusted(path, tensors)) - names)
    if refused:
        raise UntrustedTypesError(path, refused)
    if _PARTS not in tensors:
        return []
    try:
        return load_parts(tensors[_PARTS].tobytes(), sorted(names))
    except Exception as error:
        raise ValueError(
            f"{path}: skops cannot rebuild the saved estimators: {error}; "
            "install the packages they came from, or refit"
        ) from error
