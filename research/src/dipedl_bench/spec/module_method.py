"""`dipedl.pretrained.DIPModule` as a method of a suite: the same code as around any network."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from dipedl.dirichlet import Dirichlet

_CHUNK = 500


class DIPModuleMethod(ClassifierMixin, BaseEstimator):
    """A `DIPModule` around the head of a trained network classifier of `dipedl.networks`.

    Arguments are those of `dipedl.pretrained.ClassGaussians` and `DIPModule`; `network`, the
    trained network in FrozenEstimator, which is not changed; and `stored`, the same network with a
    memory of its features, so that images need not pass it again.
    """

    coordinates = "cartesian"

    def __init__(
        self,
        covariance: str = "full",
        shrinkage: float | str | None = "oas",
        score: str = "fused",
        normalizer: Any = None,
        calibrator: Any = None,
        gamma: float = 1.0,
        prior: Any = 0.5,
        network: Any = None,
        stored: Any = None,
    ) -> None:
        self.covariance = covariance
        self.shrinkage = shrinkage
        self.score = score
        self.normalizer = normalizer
        self.calibrator = calibrator
        self.gamma = gamma
        self.prior = prior
        self.network = network
        self.stored = stored

    def fit(self, X: Any, y: Any, *, calibration: tuple[Any, Any] | None = None) -> Self:
        """Learn from features of training rows X (n, d), y (n,), and of held-out rows if given."""
        import torch

        from dipedl.pretrained import ClassGaussians, DIPModule

        trained = self.network.estimator
        self.classes_ = trained.classes_
        device, gpu = trained.training_settings().device, torch.cuda.is_available()
        self.device_ = torch.device(("cuda" if gpu else "cpu") if device == "auto" else device)
        density = ClassGaussians(
            self.covariance, coordinates=self.coordinates, shrinkage=self.shrinkage
        )
        module = DIPModule(
            deepcopy(trained.module_.head).to(self.device_),
            density=density,
            score=self.score,
            gamma=self.gamma,
            prior=self.prior,
            normalizer=self.normalizer,
            calibrator=self.calibrator,
        )
        batches = None if calibration is None else list(self._batches(*calibration))
        self.module_ = module.fit_density(list(self._batches(X, y)), calibration=batches)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Mean class probabilities of inputs X (n, d), shape (n, k)."""
        return np.asarray(self.predict_dirichlet(X).mean)

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of inputs X (n, d), shape (n,)."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])

    def predict_dirichlet(self, X: Any) -> Dirichlet:
        """The Dirichlets of inputs X (n, d), as arrays."""
        import torch

        check_is_fitted(self, "module_")
        with torch.inference_mode():
            answers = [self.module_(inputs.to(self.device_)) for inputs, _ in self._batches(X)]
        alpha, evidence = (
            torch.cat([getattr(answer, name) for answer in answers]).double().cpu().numpy()
            for name in ("concentration", "log_evidence")
        )
        return Dirichlet(alpha, log_evidence=evidence)

    def uncertainty(self, X: Any) -> np.ndarray:
        """Negated log-evidence of inputs X (n, d), shape (n,): it ranks as vacuity does."""
        return -np.asarray(self.predict_dirichlet(X).log_evidence)

    def _batches(self, X: Any, y: Any = None) -> Iterator[tuple[Any, Any]]:
        """Features and class numbers, in batches."""
        import torch

        features = np.asarray(self.stored.transform(np.asarray(X)), dtype=np.float32)
        numbers = None if y is None else np.searchsorted(self.classes_, y)
        for start in range(0, len(features), _CHUNK):
            rows = slice(start, start + _CHUNK)
            labels = None if numbers is None else torch.tensor(numbers[rows])
            yield torch.tensor(features[rows]), labels


class PolarDIPModuleMethod(DIPModuleMethod):
    """`DIPModuleMethod` with Gaussians on the direction and the length of the features."""

    coordinates = "polar"
