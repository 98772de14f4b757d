"""Words of the table for objects among the attributes: estimators, and parts of this library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .checks import Check, Shape, Sizes, need
from .homes import is_own_type, is_type

_PACKAGES = (__name__.partition(".")[0], "sklearn")


def _is_known(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in _PACKAGES


def sizes_of(value: Any) -> dict[str, int]:
    """The sizes that an object made of checked parts has: features ``d``, classes ``k``."""
    found: dict[str, int] = {}
    for name, attributes in {
        "d": ("n_features_in_", "n_features"),
        "k": ("classes_", "max_n_classes", "n_classes"),
    }.items():
        for attribute in attributes:
            size = getattr(value, attribute, None)
            if size is not None:
                found[name] = int(size) if np.ndim(size) == 0 else len(size)
                break
    return found


def is_a(*types: str, **same: Shape) -> Check:
    """An object of one of the named types, with sizes that agree with ours."""

    def check(value: Any, sizes: Sizes) -> None:
        names = (name.rpartition(".") for name in types)
        found = any(is_type(type(value), module, name) for module, _, name in names)
        need(found, f"is a {type(value).__name__}, not one of {types}")
        _agree(sizes, sizes_of(value), same, required=True)

    return check


def model(method: str = "get_params", **same: Shape) -> Check:
    """An estimator with a method; one of a package with known rules has sizes that agree."""

    def check(value: Any, sizes: Sizes) -> None:
        found = hasattr(value, "get_params") and hasattr(value, method)
        need(found, f"is a {type(value).__name__}, not an estimator with {method}")
        if _is_known(value):
            _agree(sizes, sizes_of(value), same, required=False)

    return check


def _agree(
    sizes: Sizes, found: Mapping[str, int], same: Mapping[str, Shape], *, required: bool
) -> None:
    for theirs, ours in same.items():
        if theirs in found:
            sizes.agree(ours, found[theirs])
        else:
            need(not required, f"has no size {theirs}")


def ours(*names: str, **lengths: str) -> Check:
    """An object of one of the classes of this library, by their names in a file.

    `lengths` names the attribute that has the length of a size, or is that size.
    """

    def check(value: Any, sizes: Sizes) -> None:
        found = any(is_own_type(type(value), name) for name in names)
        need(found, f"is a {type(value).__name__}, not one of {names}")
        for size, attribute in lengths.items():
            length = getattr(value, attribute)
            sizes.agree(size, length if isinstance(length, int) else len(length))

    return check


def fitted(check: Check) -> Check:
    """Apply `check`, and require a fitted object if it is of a library that says so."""

    def check_both(value: Any, sizes: Sizes) -> None:
        check(value, sizes)
        if _is_known(value) and hasattr(value, "fit"):
            check_is_fitted(value)

    return check_both


def has(*methods: str) -> Check:
    """Any object with one of the methods."""

    def check(value: Any, sizes: Sizes) -> None:
        found = any(callable(getattr(value, method, None)) for method in methods)
        need(found, f"is a {type(value).__name__} without {' or '.join(methods)}")

    return check
