"""Deep ensemble."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Tags, _safe_indexing
from sklearn.utils.validation import check_is_fitted

from ..answers import Decisions
from ..dirichlet import entropy, max_prob
from ..inputs import (
    FittedClassifier,
    check_class_counts,
    clone_classifier,
    fit_classifier,
    validate_inputs,
    validate_inputs_and_labels,
)
from ..maths.arrays import check_choice, check_flag, check_integer
from ..maths.gamma import log_ratio
from ..maths.seeds import random_state_of
from ..protocols import atomic
from ..writing.finding import warn_caller
from .post_hoc import accepted_arguments, take_input_tags

__all__ = ["DeepEnsemble"]

_PROBE = 256
_TINY = np.finfo(np.float64).tiny

Progress = Callable[[dict[str, Any]], object]
Reduction = Callable[[np.ndarray], np.ndarray]


def mutual_information(samples: np.ndarray) -> np.ndarray:
    """Mutual information in nats of label and model, for `samples` (m, n, k) of P; shape (n,).

    ``H(mean p) - mean H(p)``, computed as the mean of KL(p || mean p), whose terms are all
    non-negative: the difference of the entropies loses its digits where the samples agree.
    """
    mean = samples.mean(axis=0)
    log = log_ratio(np.maximum(samples, _TINY), np.maximum(mean, _TINY))
    terms = samples * log - (samples - mean)
    return np.asarray(np.maximum(terms, 0.0).mean(axis=0).sum(axis=1))


_KINDS: dict[str, Reduction] = {
    "mutual_information": mutual_information,
    "entropy": lambda samples: entropy(samples.mean(axis=0)),
    "max_prob": lambda samples: max_prob(samples.mean(axis=0)),
}


def uncertainty_of_samples(kind: str) -> Reduction:
    """Return the function of sampled probabilities (m, n, k) that gives an uncertainty (n,)."""
    check_choice("kind", kind, _KINDS)
    return _KINDS[kind]


@dataclass(eq=False, repr=False)
class DeepEnsemble(Decisions, ClassifierMixin, BaseEstimator):
    r"""Clones of a classifier, each trained on all data from its own random start.

    .. math:: p(x) = \frac{1}{m} \sum_i p_i(x), \quad
              u(x) = H(p(x)) - \frac{1}{m} \sum_i H(p_i(x)).

    Uncertainty is the mutual information of label and member, large where members disagree.

    Parameters
    ----------
    estimator : classifier with ``predict_proba`` and ``random_state``, optional
        Any classifier whose fit depends on ``random_state``; in a pipeline or another composite,
        the one of each step. None is a `TorchClassifier`: an MLP, Adam for 8 epochs, one cycle with
        a peak of 2e-3. For images: ``TorchClassifier(LeNet5(dropout=0.0))``.
    n_members : int, default=5
        Number of members m, at least 2.
    random_state : int, RandomState or None, default=0
        Source of the members' seeds, which replace those of `estimator`.
    bootstrap : bool, default=False
        Fit each member to n rows drawn with replacement, the first row of every class among them
        (Breiman, "Bagging predictors", Machine Learning 24, 1996); any classifier has members then.

    Attributes
    ----------
    classes_ : ndarray, shape (k,)
        Class labels; the columns of ``predict_proba``.
    members_ : list of classifiers
        The fitted members.
    member_seeds_ : list of int
        The ``random_state`` of each.
    n_features_in_ : int
        Number of inputs d.

    Warns
    -----
    UserWarning
        From ``fit``, if the members agree to the last bit: the estimator does not use its seed.

    Notes
    -----
    Every member is a clone, built from its parameters with a seed of its own. A copy of a built
    network whose layers are reset afterwards keeps, under spectral normalisation by hooks, the
    convolutions of the original: members then start from the same weights.

    No adversarial examples are used: the paper's ablation finds little gain for images.

    References
    ----------
    Lakshminarayanan, Pritzel, Blundell, "Simple and scalable predictive uncertainty estimation
    using deep ensembles", NeurIPS (2017), algorithm 1 and section 2.4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.ensemble import ExtraTreesClassifier
    >>> from dipedl.baselines import DeepEnsemble
    >>> X, y = load_iris(return_X_y=True)
    >>> ensemble = DeepEnsemble(ExtraTreesClassifier(5, bootstrap=True)).fit(X, y)
    >>> u = ensemble.uncertainty(X)
    >>> bool(u[y == 0].mean() < u[y == 1].mean())
    True
    """

    estimator: Any = None
    n_members: int = 5
    random_state: Any = 0
    bootstrap: bool = False

    def check_parameters(self) -> None:
        """Raise ValueError or TypeError for a setting that no fit can take."""
        check_integer("n_members", self.n_members, 2)
        check_flag("bootstrap", self.bootstrap)

    @atomic
    def fit(
        self,
        X: Any,
        y: Any,
        validation: tuple[Any, Any] | None = None,
        *,
        checkpoint: str | Path | None = None,
        progress: Progress | None = None,
        deadline: float | None = None,
    ) -> Self:
        """Fit every member on all of X and y.

        Parameters
        ----------
        X, y : array-like or DataFrame, shape (n, d), and array-like, shape (n,)
            Inputs and labels.
        validation : tuple (X, y), optional
            Passed to the ``fit`` of every member if it takes the argument.
        checkpoint, progress, deadline : optional
            As in `dipedl.networks.train`, for members whose ``fit`` takes them. Member i uses the
            file with ``.i`` appended; a finished one is only read. The dict has the number of the
            "member", from 1, and of "members" too; "seconds_left" are those of all.

        Raises
        ------
        TypeError, ValueError
            If the estimator has no ``random_state`` or is frozen, or another argument is invalid.
        """
        self.check_parameters()
        self.__dict__.pop("held_out_", None)  # of an earlier fit
        X, y = validate_inputs_and_labels(self, X, y)
        check_class_counts(y)
        template = _template(self.estimator, seeded=not self.bootstrap)
        draw = random_state_of(self.random_state)
        self.member_seeds_ = draw.randint(2**31 - 1, size=self.n_members).tolist()
        members = []
        for i, seed in enumerate(self.member_seeds_):
            keywords = accepted_arguments(
                template,
                validation=validation,
                checkpoint=None if checkpoint is None else Path(f"{checkpoint}.{i}"),
                progress=None if progress is None else _report(progress, i, self.n_members),
                deadline=deadline,
            )
            rows, labels = _resample(X, y, seed) if self.bootstrap else (X, y)
            member = clone(template).set_params(**dict.fromkeys(_seed_names(template), seed))
            members.append(fit_classifier(member, rows, labels, keywords)[0])
        self.members_ = members
        self.classes_ = np.unique(y)
        self._warn_if_alike(_safe_indexing(X, np.arange(min(len(y), _PROBE))))
        return self

    def predict(self, X: Any) -> np.ndarray:
        """Most probable label of each input X (n, d) under the mean, shape (n,)."""
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Mean class probabilities of the members for inputs X (n, d), shape (n, k)."""
        return np.asarray(self.sample_proba(X).mean(axis=0))

    def uncertainty(self, X: Any, kind: str = "mutual_information") -> np.ndarray:
        """Uncertainty of each input X (n, d), shape (n,).

        Parameters
        ----------
        X : array-like, shape (n, d)
            Inputs.
        kind : {"mutual_information", "entropy", "max_prob"}, default="mutual_information"
            Mutual information of label and member (nats, >= 0); of the mean probabilities: entropy
            (nats), or one minus the largest.
        """
        return uncertainty_of_samples(kind)(self.sample_proba(X))

    def sample_proba(self, X: Any) -> np.ndarray:
        """Class probabilities of inputs X (n, d) by every member, shape (n_members, n, k)."""
        check_is_fitted(self, "members_")
        X = validate_inputs(self, X)
        return np.stack([FittedClassifier(m, self.classes_).proba(X) for m in self.members_])

    def __sklearn_tags__(self) -> Tags:
        """The tags of the members."""
        tags = super().__sklearn_tags__()
        return tags if self.estimator is None else take_input_tags(tags, self.estimator)

    def _warn_if_alike(self, X: Any) -> None:
        P = self.sample_proba(X)
        # Fully grown trees are certain of their training rows, for every seed.
        undecided = ((P > 0) & (P < 1)).any()
        if undecided and (P == P[0]).all():
            warn_caller(
                f"the {self.n_members} members agree to the last bit on {P.shape[1]} training "
                f"inputs: fitting {self.members_[0]!r} seems not to depend on random_state; use a "
                "network or a randomised classifier"
            )


def _report(progress: Progress, member: int, n_members: int) -> Progress:
    """The progress callback of a member, with its number and the time that all members need."""

    def report(of_member: dict[str, Any]) -> None:
        later = (n_members - 1 - member) * of_member["epochs"] * of_member["seconds"]
        left = of_member["seconds_left"] + later
        progress(of_member | {"member": member + 1, "members": n_members, "seconds_left": left})

    return report


def _seed_names(estimator: Any) -> list[str]:
    return [name for name in estimator.get_params() if name.split("__")[-1] == "random_state"]


def _resample(X: Any, y: np.ndarray, seed: int) -> tuple[Any, np.ndarray]:
    """Return as many rows, drawn with replacement, the first of every class among them."""
    first = np.unique(y, return_index=True)[1]
    drawn = np.random.default_rng(seed).integers(len(y), size=len(y) - len(first))
    rows = np.concatenate([first, drawn])
    return _safe_indexing(X, rows), y[rows]


def _template(estimator: Any, seeded: bool) -> Any:
    if estimator is None:
        from ..networks.torch_classifier import TorchClassifier
        from .evidential import TRAINING

        return TorchClassifier(training=TRAINING)
    if isinstance(estimator, FrozenEstimator):
        raise TypeError(
            f"estimator must not be frozen, got {estimator!r}: every member is a newly fitted clone"
        )
    template = clone_classifier(estimator)
    if seeded and not _seed_names(template):
        raise TypeError(
            f"estimator must have a parameter random_state, got {estimator!r}: without one all "
            "members are the same; or set bootstrap=True"
        )
    return template
