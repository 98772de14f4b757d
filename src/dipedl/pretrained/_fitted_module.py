"""What a `DIPModule` does once it is fitted: it scores, flags and gives Dirichlets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
import torch
from sklearn.exceptions import NotFittedError
from torch import Tensor, nn

from ..decisions._per_sample import PerSampleDecisions
from ..dirichlet import Dirichlet
from ..nn.batches import as_call
from ._decisions.kept_rows import KeptRows
from ._decisions.questions import ModuleDecisions
from ._evidence_head import EvidenceHead
from ._feature_source import FeatureSource, listed
from ._fusion import Score
from ._stream import network_errors
from ._training_mode import check_eval
from .class_gaussians import ClassGaussians, never_halved
from .dirichlet_output import DirichletOutput

_FITTED = ("classes_", "n_", "offset_", "evidence_", "spread_")
_NOT_FITTED = (
    "this DIPModule is not fitted; call fit_density(loader) with the training data of the network, "
    "or load_state_dict"
)


class FittedModule(ModuleDecisions, nn.Module):
    """Network, density, fusion and head in one pass; `DIPModule` adds settings and the fit."""

    network: nn.Module
    source: FeatureSource
    density_: ClassGaussians
    fusion: Score
    head: EvidenceHead
    kept: KeptRows
    classes: list[Any] | None
    _modal: list[nn.Module]

    def forward(self, *args: Any, **kwargs: Any) -> DirichletOutput:
        """Dirichlets of a batch, in one pass of the network.

        Parameters
        ----------
        *args, **kwargs
            What the network takes, or one batch of a loader: a dict is its keyword arguments, a
            tuple or list its positional ones.

        Returns
        -------
        DirichletOutput
            ``concentration`` (n, k), ``log_evidence`` (n,), ``mean`` (n, k) and ``vacuity`` (n,).
            An input that is NaN, or gives NaN features, is NaN throughout.
        """
        now = self._snapshot()
        found: DirichletOutput = now.head(*now.scored(*args, **kwargs))
        return found

    def scored(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """Scores (n,), and logits of the network (n, k)."""
        return self._snapshot()._passed(*args, **kwargs)[1:]

    def _passed(self, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Features (n, p), scores (n,) and logits (n, k)."""
        self._check_fitted()
        check_eval(self._modal)
        inputs = as_call(self.source.call, *args, **kwargs)
        if torch.compiler.is_compiling():
            # A compiler follows no handlers, and a compiled graph raises what it likes.
            features, logits = self.source(*inputs.args, **inputs.kwargs)
        elif inputs.are_empty:
            # Many a network cannot reshape what has no rows.
            features = self.density_.origin.new_empty(0, self.density_.n_features_)
            logits = features.new_empty(0, self.density_.n_classes_)
        else:
            with network_errors(inputs, self.source):
                features, logits = self.source(*inputs.args, **inputs.kwargs)
        return features, self.fusion(self.density_(features), logits), logits

    def score_samples(self, *args: Any, **kwargs: Any) -> Tensor:
        """Scores of a batch, higher is more typical, shape (n,).

        In standard deviations of held-out rows if fused, else the log-density in nats.
        """
        return self.scored(*args, **kwargs)[0]

    def predict_dirichlet(self, *args: Any, **kwargs: Any) -> Dirichlet:
        """The same Dirichlets as `forward`, with every uncertainty, of tensors."""
        now = self._snapshot()
        return now.head.dirichlet(*now.scored(*args, **kwargs))

    def predict_ood(  # type: ignore[override]
        self, *args: Any, alpha: float | None = None, **kwargs: Any
    ) -> Tensor:
        """+1 for inputs like the training data, -1 where ``p_value <= alpha`` or is NaN, (n,).

        `alpha` is the share of ID inputs that may be flagged; default: `false_alarm_rate`. The rest
        is what the network takes.
        """
        now = self._snapshot()
        scores = now.score_samples(*args, **kwargs)
        if alpha is None:
            return now.head.flags(scores)
        return torch.where(scores >= now._alarm_threshold(alpha), 1, -1)

    def describe(self) -> str:
        """The layer that the density sees, its shape, and how to take another."""
        lines = [f"features: {self.source.layers}"]
        if self.head.is_fitted:
            lines.append(f"shape: (n, {self.density_.n_features_})")
        lines.append("to take another: DIPModule(network, features='<module>', pool='average')")
        if self.source.shapes:
            lines.append(f"modules that ran, with shapes: {listed(self.source.shapes)}")
        return "\n".join(lines)

    @property
    def classes_(self) -> np.ndarray:  # type: ignore[override]
        """Names of the classes, shape (k,)."""
        self._check_fitted()
        k = len(self.head.prior)
        return np.arange(k) if self.classes is None else np.array(self.classes)

    @property
    def n_(self) -> float:  # type: ignore[override]
        """Rows that the density learned from."""
        self._check_fitted()
        return float(self.density_.n_)

    @property
    def offset_(self) -> float:
        """Score below which `predict_ood` flags an input."""
        self._check_fitted()
        return float(self.head.offset)

    def train(self, mode: bool = True) -> Self:
        """Set the mode of this module; the network only ever goes to eval mode."""
        self.training = mode
        if not mode:
            self.network.eval()
        return self

    def _snapshot(self) -> Self:
        # A compiler has one state; the evidence stays with the rows that it was learned from.
        return self if torch.compiler.is_compiling() else PerSampleDecisions._snapshot(self)

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        for part in (self.source, self.density_, self.fusion, self.head):
            part._apply(never_halved(fn), recurse)
        self.network._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return self

    def __getattr__(self, name: str) -> Any:
        # NotFittedError is an AttributeError too: a property that raises it ends here.
        if name in _FITTED:
            raise NotFittedError(_NOT_FITTED)
        return super().__getattr__(name)

    def _check_fitted(self) -> None:
        if not (self.head.is_fitted and self.source.is_known):
            raise NotFittedError(_NOT_FITTED)
