"""Densities that are sums over rows: moments that several share, and the densities made of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np

from ...density.base import density_after_normalizer, unit_rows
from ...density.ensemble import DensityEnsemble
from ...density.gaussian import ClassConditionalGaussians, GaussianDensity, RelativeDensity
from ...gaussians.moments import (
    LEDOIT_WOLF,
    Moments,
    TiedMoments,
    add_moments,
    moments_by_class,
    weights_of,
)


class Form(NamedTuple):
    """Moments by class: of rows as they are or of unit length, and what they hold."""

    unit: bool
    diagonal: bool
    higher: bool
    #: One scatter for all classes.
    tied: bool = False


@dataclass(frozen=True, eq=False)
class Sums:
    """Moments of rows by form, one for each class, and the ends of each feature; ``a + b`` adds."""

    moments: dict[Form, Sequence[Moments]]
    low: np.ndarray
    high: np.ndarray

    @classmethod
    def of(cls, Z: np.ndarray, y: np.ndarray, classes: np.ndarray, forms: Iterable[Form]) -> Sums:
        """Sum features Z (n, p), n >= 1, with labels y (n,)."""
        moments: dict[Form, Sequence[Moments]] = {}
        for form in forms:
            rows = unit_rows(Z) if form.unit else Z
            if form.tied:
                moments[form] = TiedMoments.of(rows, y, None, classes)
            else:
                moments[form] = moments_by_class(
                    rows, y, None, classes, diagonal=form.diagonal, higher=form.higher
                )
        return cls(moments, Z.min(axis=0), Z.max(axis=0))

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            {form: add_moments(m, other.moments[form]) for form, m in self.moments.items()},
            np.minimum(self.low, other.low),
            np.maximum(self.high, other.high),
        )


def forms_of(density: Any, unit: bool = False) -> set[Form]:
    """Return the forms that a fitted density, or its parts, are made of; none if it is no sum."""
    behind = density_after_normalizer(density)
    if behind is not None:
        return forms_of(behind, True)
    if isinstance(density, DensityEnsemble):
        return set().union(*(forms_of(part, unit) for part in density.estimators_.values()))
    if isinstance(density, RelativeDensity):
        parts = [forms_of(part, unit) for part in (density.density_, density.background_)]
        return set().union(*parts) if all(parts) else set()
    if isinstance(density, ClassConditionalGaussians | GaussianDensity):
        higher, kind = density.shrinkage == LEDOIT_WOLF, density.covariance_type
        if kind == "shared-basis":
            return set()
        per_class = isinstance(density, ClassConditionalGaussians) and kind != "tied"
        return {Form(unit, kind == "diag", higher, not (per_class or higher or kind == "diag"))}
    return set()


def needed_forms(density: Any) -> tuple[Form, ...]:
    """Return `forms_of` the density in order, without those that others hold."""
    forms = forms_of(density)
    return tuple(sorted(f for f in forms if not f.tied or f._replace(tied=False) not in forms))


def from_sums(density: Any, sums: Sums, classes: np.ndarray, unit: bool = False) -> Any:
    """Return the density as fitted on the rows of `sums`; one that is no sum stays as it is."""
    forms = forms_of(density, unit)
    if not forms:
        return density
    if isinstance(density, ClassConditionalGaussians | GaussianDensity):
        form = forms.pop()
        held = sums.moments.get(form)
        held = sums.moments[form._replace(tied=False)] if held is None else held
        return _with_moments(density, held, form, classes)
    made = copy(density)
    if density_after_normalizer(density) is not None:
        name, last = density.steps[-1]
        made.steps = [*density.steps[:-1], (name, from_sums(last, sums, classes, True))]
    elif isinstance(density, DensityEnsemble):
        parts = density.estimators_.items()
        made.estimators_ = {name: from_sums(part, sums, classes, unit) for name, part in parts}
    else:
        for name in ("density_", "background_"):
            setattr(made, name, from_sums(getattr(density, name), sums, classes, unit))
    return made


def _with_moments(density: Any, moments: Any, form: Form, classes: np.ndarray) -> Any:
    there = np.flatnonzero(weights_of(moments))
    tied = isinstance(moments, TiedMoments)
    held: Any = moments.at(there) if tied else [m for m in moments if m.weight]
    if isinstance(density, GaussianDensity):
        return density.with_moments(held.whole if tied else reduce(add, held))
    return density.with_moments(
        classes[there], TiedMoments.pooling(held) if form.tied and not tied else held
    )


def parts_without_sums(density: Any) -> list[str]:
    """Return the names of the parts of a density that are no sums; its own if it is none."""
    if isinstance(density, DensityEnsemble):
        return [name for name, part in density.estimators_.items() if not forms_of(part)]
    return [] if forms_of(density) else [type(density).__name__]
