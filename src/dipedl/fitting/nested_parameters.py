"""Parameters of parts that are chosen at fit."""

from __future__ import annotations

from typing import Any, Self


class NestedParameters:
    """`set_params` that says why a part which is None has no parameters."""

    def set_params(self, **params: Any) -> Self:
        """Set parameters of this estimator and, as ``part__name``, of its parts."""
        for key in params:
            part, nested, _ = key.partition("__")
            given = params.get(part, getattr(self, part, part))
            if nested and given is None:
                raise ValueError(
                    f"{key} cannot be set: {part} is None, which stands for a default that is "
                    f"chosen at fit; name it first, such as {_named(part)}"
                )
        set_params = super().set_params  # type: ignore[misc]
        return set_params(**params)  # type: ignore[no-any-return]


def _named(part: str) -> str:
    examples = {
        "density": "density=dipedl.density.GDADensity()",
        "estimator": "estimator=LogisticRegression()",
    }
    return examples.get(part, f"{part}=... with an object that has this parameter")
