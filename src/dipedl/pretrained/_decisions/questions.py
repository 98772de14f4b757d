"""The questions that a `DIPModule` answers about single inputs."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import torch
from scipy import special
from torch import Tensor

from ...calibration.rehearsal import Rehearsal
from ...decisions._dirichlet import DirichletDecisions
from ...evidence_model import EvidenceModel
from ...held_out import warn_of_source
from ...maths.array_namespace import to_numpy
from ...nn.batches import as_call, holds_tensors, moved
from .._evidence_head import EvidenceHead
from .._feature_source import FeatureSource
from ..class_gaussians import ClassGaussians
from .kept_rows import KeptRows
from .readings import FusedParts, ReadableGaussians


def _of_call(method: Callable[..., Any]) -> Any:
    """Return a method of one batch X that also takes X apart, as the network itself does."""
    options = list(inspect.signature(method).parameters)[2:]

    @wraps(method)
    def answer(self: Any, *args: Any, **kwargs: Any) -> Any:
        named = {name: kwargs.pop(name) for name in options if name in kwargs}
        if not args and list(kwargs) == ["X"]:
            args = (kwargs.pop("X"),)
        # What holds no tensor and follows a batch is options by their position.
        parts = 1 if not kwargs and not holds_tensors(args[1:]) else len(args)
        inputs = as_call(self.source.call, *args[:parts], **kwargs)
        return method(self, inputs, *args[parts:], **named)

    return answer


class ModuleDecisions(DirichletDecisions):
    """Decisions from the held-out rows that the module keeps.

    `X` is one batch as the network takes it: a tensor, a tuple of positional or a dict of keyword
    arguments; or these arguments themselves, as in a call of the network, with the options of the
    method by name. What is one number per input (or per class) comes as a tensor on the device of
    the density; what holds names of classes (`Rejection`, cards) has numpy arrays.
    """

    _calibrated_by: ClassVar[str] = "module.calibrate(loader)"

    p_value = _of_call(DirichletDecisions.p_value)
    predict_set = _of_call(DirichletDecisions.predict_set)
    predict_with_reject = _of_call(DirichletDecisions.predict_with_reject)
    uncertainty = _of_call(DirichletDecisions.uncertainty)
    answers = _of_call(DirichletDecisions.answers)
    explain = _of_call(DirichletDecisions.explain)

    if TYPE_CHECKING:
        density_: ClassGaussians
        head: EvidenceHead
        kept: KeptRows
        source: FeatureSource
        n_: float

        def _check_fitted(self) -> None: ...
        def _passed(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]: ...

    @property
    def evidence_(self) -> EvidenceModel:
        """The evidence side as `dipedl.DIPClassifier` has it, on the host and in float64."""
        self._check_fitted()
        if self.kept.is_empty:
            raise ValueError(f"this DIPModule holds no held-out rows; {self._remedy()}")
        if self.kept.model is None:
            self.kept.model = self._learned()
        model: EvidenceModel = self.kept.model
        return model

    @property
    def spread(self) -> Rehearsal | None:
        """The learner of the strength, unfitted."""
        return self.head.spread

    @property
    def spread_(self) -> Rehearsal | None:
        """The fitted `spread`, on the host; None without one."""
        self._check_fitted()
        return None if self.head.supported is None else self.head.supported.learned()

    @property
    def false_alarm_rate(self) -> float:  # type: ignore[override]
        """Share of held-out ID inputs that `predict_ood` may flag."""
        return self.head.false_alarm_rate

    def _warned(self) -> Self:
        """Itself, with a warning if its held-out rows were seen before."""
        warn_of_source(self.kept.held_out(), self)
        return self

    def _learned(self) -> EvidenceModel:
        held = self.kept.held_out()
        with warnings.catch_warnings():
            # Whatever there is to warn of was said by the fit.
            warnings.simplefilter("ignore", UserWarning)
            model = self.head.learned(held, n=self.n_, k=len(self.classes_))
        gaussians = ReadableGaussians(self.density_, self.classes_.tolist())
        model.features_ = model.columns_ = None
        # Not known is not denied: what comes without an error is suspect then.
        model.memorised_ = bool(self.kept.memorised.any()) or None
        model.density_ = FusedParts(gaussians) if held.component_names else gaussians
        return model

    def _evidence(self) -> EvidenceModel:
        return self.evidence_

    def _seen(self, X: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Features (n, p), the network's probabilities (n, k) and scores (n,) of a batch."""
        self._check_fitted()
        inputs = as_call(self.source.call, moved(X, self.density_.origin.device))
        with torch.no_grad():
            features, scores, logits = map(to_numpy, self._passed(inputs))
        if np.isnan(scores).any():
            raise ValueError(
                f"X must not hold NaN, and row {int(np.isnan(scores).argmax())} gives a score that "
                "is NaN; drop such inputs: predict_ood flags them"
            )
        return features, special.softmax(logits, axis=1), scores

    def _as_answer(self, values: np.ndarray) -> Tensor:  # type: ignore[override]
        device = self.density_.origin.device
        found = torch.tensor(values, device="cpu")
        # Apple's GPUs have no float64.
        single = device.type == "mps" and found.is_floating_point()
        return (found.float() if single else found).to(device)
