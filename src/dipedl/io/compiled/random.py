"""Random states and losses: compiled objects whose state is a few numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..checks import Sizes, count, ints, need, number

#: The state that numpy's module-level functions share: in a file by name, not by value.
_SHARED = np.random.mtrand._rand
_WORDS = 624
_128_BITS = 1 << 128


class _RandomState:
    """A Mersenne twister, or the state that all of numpy shares."""

    def take(self, value: Any) -> dict[str, Any]:
        if value is _SHARED:
            return {}
        kind, key, position, has_gauss, gauss = value.get_state()
        need(kind == "MT19937", f"is a {kind}")
        return {"key": key, "position": position, "has_gauss": has_gauss, "gauss": gauss}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        if not state:
            return _SHARED
        ints(_WORDS, dtype=np.uint32)(state["key"], Sizes())
        # numpy reads the word at this position without a look.
        for name, most in {"position": _WORDS, "has_gauss": 1}.items():
            count()(state[name], Sizes())
            need(state[name] <= most, f"has {name} {state[name]}")
        number()(state["gauss"], Sizes())
        made = np.random.RandomState()
        made.set_state(
            ("MT19937", state["key"], state["position"], state["has_gauss"], state["gauss"])
        )
        return made


class _Generator:
    """numpy's default generator."""

    def take(self, value: Any) -> dict[str, Any]:
        state = value.bit_generator.state
        need(state["bit_generator"] == "PCG64", f"is a {state['bit_generator']}")
        return {**state["state"], "has": state["has_uint32"], "word": state["uinteger"]}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        for name, bound in {
            "state": _128_BITS,
            "inc": _128_BITS,
            "has": 2,
            "word": 1 << 32,
        }.items():
            count()(state[name], Sizes())
            need(state[name] < bound, f"has {name} {state[name]}")
        made = np.random.PCG64(0)
        made.state = {
            "bit_generator": "PCG64",
            "state": {"state": state["state"], "inc": state["inc"]},
            "has_uint32": state["has"],
            "uinteger": state["word"],
        }
        return np.random.Generator(made)


class _Loss:
    """A loss of scikit-learn: only its link is asked after the fit."""

    def take(self, value: Any) -> dict[str, Any]:
        return {"n_classes": value.n_classes} if self._many(type(value)) else {}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        if not self._many(cls):
            return cls()
        count(least=2)(state["n_classes"], Sizes())
        return cls(n_classes=state["n_classes"])

    def _many(self, cls: type) -> bool:
        from sklearn._loss import HalfMultinomialLoss

        return issubclass(cls, HalfMultinomialLoss)


class _Bunch:
    """A dict of scikit-learn whose keys are attributes."""

    def take(self, value: Any) -> dict[str, Any]:
        return {"items": dict(value)}

    def make(self, cls: type, state: dict[str, Any]) -> Any:
        need(all(isinstance(name, str) for name in state["items"]), "has names that are no text")
        return cls(**state["items"])


CODECS: dict[str, Any] = {
    "numpy.random.RandomState": _RandomState(),
    "numpy.random.Generator": _Generator(),
    "sklearn.utils.Bunch": _Bunch(),
    **{
        f"sklearn._loss.loss.{name}": _Loss()
        for name in ("HalfMultinomialLoss", "HalfBinomialLoss", "ExponentialLoss")
    },
}
