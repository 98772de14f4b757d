"""The result of every evidential method: one Dirichlet over the class probabilities per input.

Its closed forms, once for numpy arrays and torch tensors; below the class those that others use
too, and the uncertainties that need class probabilities alone. Concentrations are alpha (n, k),
logs in nats. Intervals and samples are computed on the host and carry no gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps
from typing import Any

import numpy as np
from scipy import special

from .maths.arrays import (
    LOG_2PI,
    TOLERANCE,
    Array,
    as_float,
    check_integer,
    check_positive,
    check_positive_number,
    check_rate,
    check_simplex,
    counts_like,
    exclusive_sum,
    is_tensor,
    namespace,
    rows_like,
    special_functions,
    to_numpy,
)
from .maths.gamma import (
    digamma_excess,
    gamma_divergence_remainder,
    gamma_entropy,
    log_ratio,
    stirling_error,
)
from .writing.finding import Finding, FindingWarning, warn_caller

__all__ = ["Dirichlet", "concentration_of_samples"]

#: Largest exponent of evidence that a concentration shows, in float32 and in float64.
DISPLAYED_FLOAT32, DISPLAYED = 80.0, 300.0
#: Least share that the other classes have in `confidence`.
LEAST_DOUBT = 1e-12
DIRICHLET_KINDS = ("vacuity", "total", "aleatoric", "epistemic", "differential_entropy")
#: Inputs and classes of the table in a notebook.
_MOST_SHOWN = 10


def _frozen_property(method: Callable[[Any], Array]) -> cached_property[Array]:
    """Return a property that is computed once, as an array that cannot be written to."""

    @wraps(method)
    def compute(self: Any) -> Array:
        value = method(self)
        if not is_tensor(value):
            value.flags.writeable = False
        return value

    return cached_property(compute)


@dataclass(frozen=True, eq=False, repr=False)
class Dirichlet:
    r"""One Dirichlet distribution over k class probabilities for each of n inputs; immutable.

    Parameters
    ----------
    concentration : array or tensor, shape (n, k)
        Finite and > 0. Numpy input is held as float64; a tensor keeps dtype, device and gradient.
    log_evidence : array or tensor, shape (n,), optional
        Log of the total pseudo-count beyond the prior. Kept beside `concentration` because far from
        the data the evidence is lost in ``prior + evidence``: rank by this, show the concentration.
        Default: from the other two; a row that holds less than the prior has none (``-inf``).
    prior : float or array, shape (k,), default=1.0
        Concentration of the prior that the evidence was added to; only `vacuity`
        depends on it.
    caveat : Finding, optional
        Why intervals are known to be too narrow; `credible_interval` warns of it.

    Raises
    ------
    ValueError
        If a shape is wrong, or a value is not finite or not positive.

    Notes
    -----
    Entropies are in nats, uncertainties higher where less is sure; `total` is the sum of the two.

    References
    ----------
    Carlotti et al., "Density-Informed Pseudo-Counts for Calibrated Evidential Deep Learning",
    Definitions 2.1, 2.6 and 3.1.

    Examples
    --------
    >>> import numpy as np
    >>> from dipedl import Dirichlet
    >>> d = Dirichlet(np.array([[9.0, 1.0, 2.0], [1.0, 1.0, 1.0]]))
    >>> d.vacuity
    array([0.25, 1.  ])
    >>> d.mean.round(3)
    array([[0.75 , 0.083, 0.167],
           [0.333, 0.333, 0.333]])
    >>> d[1].epistemic.round(3)
    array([0.265])
    """

    concentration: Array
    log_evidence: Array = None
    prior: Array = 1.0
    caveat: Finding | None = None

    def __post_init__(self) -> None:
        alpha = as_float(self.concentration)
        if is_tensor(alpha) and alpha.element_size() < 4:
            raise TypeError(
                f"concentration must be float32 or float64, got {alpha.dtype}; call .float() first"
            )
        if alpha.ndim != 2 or alpha.shape[1] < 2:
            raise ValueError(
                f"concentration must have shape (n, k) with k >= 2, got {tuple(alpha.shape)}; "
                "for one input pass concentration[None, :]"
            )
        prior = as_float(self.prior, like=alpha)
        if prior.ndim == 0:
            prior = namespace(alpha).broadcast_to(prior, alpha.shape[1:])
        if tuple(prior.shape) != (alpha.shape[1],):
            raise ValueError(
                f"prior must be a number or have shape ({alpha.shape[1]},), "
                f"got {tuple(prior.shape)}"
            )
        check_positive("concentration", alpha)
        check_positive("prior", prior)
        if self.log_evidence is None:
            evidence = log_or_minus_inf((alpha - prior).sum(axis=-1))
        else:
            evidence = as_float(self.log_evidence, like=alpha)
            if tuple(evidence.shape) != (alpha.shape[0],):
                raise ValueError(
                    f"log_evidence must have shape ({alpha.shape[0]},), got {tuple(evidence.shape)}"
                )
            if bool(namespace(evidence).isnan(evidence).any()):
                raise ValueError("log_evidence must not hold NaN; -inf stands for no evidence")
        for name, value in (
            ("concentration", alpha),
            ("prior", prior),
            ("log_evidence", evidence),
        ):
            object.__setattr__(self, name, _frozen(value))

    @classmethod
    def from_evidence(
        cls,
        log_evidence: Array,
        proba: Array,
        prior: Array = 1.0,
        caveat: Finding | None = None,
    ) -> Dirichlet:
        """Dirichlet with concentration ``prior + exp(log_evidence) * proba`` (Definition 3.1).

        Parameters
        ----------
        log_evidence : array or tensor, shape (n,)
            Log pseudo-count of each input; ``-inf`` gives the prior.
        proba : array or tensor, shape (n, k)
            Class probabilities; rows sum to one.
        prior : float or array, shape (k,), default=1.0
            Prior concentration, > 0.
        caveat : Finding, optional
            As of `Dirichlet`.
        """
        if _need_no_conversion(log_evidence, proba, prior):
            alpha = concentration(log_evidence, proba, prior)
            sound = prior.min() > 0 and alpha.size and alpha.min() > 0 and alpha.max() < np.inf
            sound = sound and np.abs(proba.sum(axis=1) - 1).max() <= TOLERANCE
            if sound and proba.min() >= 0 and not np.isnan(log_evidence).any():
                # The checks below would convert nothing and find nothing, and take longer.
                dirichlet = object.__new__(cls)
                dirichlet.__dict__.update(
                    concentration=_frozen(alpha),
                    log_evidence=_frozen(log_evidence),
                    prior=_frozen(prior),
                    caveat=caveat,
                )
                return dirichlet
        proba = as_float(proba)
        log_evidence = as_float(log_evidence, like=proba)
        if tuple(log_evidence.shape) != tuple(proba.shape[:1]):
            raise ValueError(
                f"log_evidence must have one entry per row of proba, shape "
                f"{tuple(proba.shape[:1])}, got {tuple(log_evidence.shape)}"
            )
        prior = as_float(prior, like=proba)
        alpha = concentration(log_evidence, proba, prior, namespace(proba))
        dirichlet = cls(alpha, log_evidence, prior, caveat)
        # After the type: rows of half precision are refused as such, and sum to one roughly.
        check_simplex("proba", proba)
        return dirichlet

    def with_strength(self, strength: Array, caveat: Finding | None = None) -> Dirichlet:
        """Return the same means with total concentration `strength` (n,); vacuity and prior stay.

        A `caveat` is of the strength, and not taken over.
        """
        alpha = self.mean * as_float(strength, like=self.concentration)[:, None]
        return Dirichlet(alpha, self.log_evidence, self.prior, caveat)

    def __len__(self) -> int:
        return int(self.concentration.shape[0])

    def __getitem__(self, rows: Any) -> Dirichlet:
        """Return the Dirichlets of some rows: an int, a slice, a mask or an index array."""
        if isinstance(rows, int | np.integer):
            rows = [rows]
        some = self.concentration[rows], self.log_evidence[rows]
        return type(self)(*some, self.prior, self.caveat)

    def __iter__(self) -> Iterator[Dirichlet]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.concentration, self.log_evidence, self.prior, self.caveat)

    def __repr__(self) -> str:
        n, k = self.concentration.shape
        return f"Dirichlet(n={n}, k={k}, dtype={self.concentration.dtype})"

    def _repr_html_(self) -> str:
        from .writing.notebook import dirichlet_table, frame

        n, k = self.concentration.shape
        first = self[:_MOST_SHOWN]
        classes = leading_classes(to_numpy(first.mean), _MOST_SHOWN)
        others = k - len(classes)
        names = [f"class {i}" for i in classes] + [f"{others} others"] * (others > 0)
        merged = Dirichlet(sum_other_classes(to_numpy(first.concentration), classes))
        bars = np.stack([merged.mean, *merged.credible_interval()], axis=-1).tolist()
        rows = f", the first {len(first)}" * (n > len(first))
        caption = f"{self!r}{rows}: vacuity, means and 95 % intervals"
        table = dirichlet_table(caption, names, bars, to_numpy(first.vacuity).tolist())
        return frame(table) + ("" if self.caveat is None else self.caveat._repr_html_())

    @_frozen_property
    def strength(self) -> Array:
        """Total concentration S, shape (n,)."""
        return self.concentration.sum(axis=-1)

    @_frozen_property
    def _others(self) -> Array:
        return exclusive_sum(self.concentration)

    @_frozen_property
    def mean(self) -> Array:
        """Mean class probabilities alpha / S, shape (n, k)."""
        return self.concentration / self.strength[:, None]

    @_frozen_property
    def variance(self) -> Array:
        """Variance of each class probability, shape (n, k)."""
        return self.mean * (self._others / self.strength[:, None]) / (self.strength + 1)[:, None]

    @_frozen_property
    def vacuity(self) -> Array:
        """Share of the strength that is prior, alpha0 / S in (0, 1], shape (n,).

        Below a ``log_evidence`` of -36 (of -34 with alpha0 = 10) it is 1: rank by `log_evidence`.
        """
        return vacuity(self.log_evidence, self.prior)

    @_frozen_property
    def total(self) -> Array:
        """Total uncertainty: entropy of the mean in nats, in [0, log k], shape (n,)."""
        return (self.mean * self._surprise).sum(axis=-1)

    @_frozen_property
    def aleatoric(self) -> Array:
        """Aleatoric uncertainty: expected entropy of the class probabilities in nats, shape (n,).

        ``psi(S + 1) - sum_k mean_k psi(alpha_k + 1)``, summed as terms that are all non-negative.
        """
        return (self.mean * (self._surprise - self._excess_gap)).sum(axis=-1)

    @_frozen_property
    def epistemic(self) -> Array:
        """Epistemic uncertainty in nats, shape (n,).

        The mutual information of the label and the class probabilities: `total` - `aleatoric`.
        """
        return (self.mean * self._excess_gap).sum(axis=-1)

    @_frozen_property
    def _surprise(self) -> Array:
        """log(S / alpha_k), shape (n, k)."""
        return namespace(self.concentration).log1p(self._others / self.concentration)

    @_frozen_property
    def _excess_gap(self) -> Array:
        """[psi(alpha_k + 1) - log alpha_k] - [psi(S + 1) - log S], shape (n, k), non-negative."""
        return digamma_excess(self.concentration) - digamma_excess(self.strength)[:, None]

    @_frozen_property
    def differential_entropy(self) -> Array:
        """Differential entropy in nats with respect to the first k - 1 probabilities, (n,)."""
        return differential_entropy(self.concentration)

    def kl_divergence(self, other: Dirichlet | Array) -> Array:
        """KL(self || other) in nats, shape (n,).

        Parameters
        ----------
        other : Dirichlet, or array or tensor of shape (n, k) or (k,)
            The other Dirichlet, or its concentration.
        """
        b = rows_like("other", getattr(other, "concentration", other), self.concentration)
        check_positive("other", b)
        return kl_divergence(self.concentration, b)

    def log_prob(self, p: Array) -> Array:
        """Log-density in nats at class probabilities p (n, k), whose rows sum to 1; shape (n,).

        Where p has zeros for a concentration below 1 and for one above 1 there is no limit: NaN.
        """
        a = self.concentration
        p = as_float(p, like=a)
        if tuple(p.shape) != tuple(a.shape):
            raise ValueError(f"p must have shape {tuple(a.shape)}, got {tuple(p.shape)}")
        check_simplex("p", p)
        xp = namespace(a)
        s, inside = xp.sum(a, axis=-1), p > 0
        mean, q = a / s[:, None], xp.where(inside, p, 1.0)
        scaled = s[:, None] * (mean - p) - a * log_ratio(mean, q) - xp.log(q)
        edge = xp.where(a > 1, -np.inf, xp.where(a < 1, np.inf, scaled))
        parts = 0.5 * xp.log(a) - stirling_error(a)
        normaliser = 0.5 * xp.log(s) - stirling_error(s)
        # S (mean - p) sums to zero; with it each term is small where p is near the mean.
        with np.errstate(invalid="ignore"):
            total = xp.sum(xp.where(inside, scaled, edge) + parts, axis=-1)
        return total - normaliser - 0.5 * (a.shape[1] - 1) * LOG_2PI

    def credible_interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Central credible interval of each class probability: (lower, upper), shapes (n, k).

        Quantiles of the marginal Beta(alpha_k, S - alpha_k), without a gradient. They hold the true
        probabilities only as far as S is right: see the page "Intervals". With a `caveat` they come
        with a `FindingWarning`.
        """
        if self.caveat is not None:
            warn_caller(FindingWarning(self.caveat))
        check_rate(level, "level")
        a, b, tail = to_numpy(self.concentration), to_numpy(self._others), (1 - level) / 2
        lower, upper = special.betaincinv(a, b, tail), special.betainccinv(a, b, tail)
        # SciPy's quantiles cross where one underflows, and for concentrations beyond 1e9.
        lower = np.minimum(lower, upper)
        return as_float(lower, self.concentration), as_float(upper, self.concentration)

    def sample(self, size: int, rng: np.random.Generator | int) -> Array:
        """Draw `size` probability vectors per input, shape (size, n, k).

        Drawn on the host in log space: concentrations near zero give corners and not 0/0.
        """
        if not isinstance(rng, np.random.Generator | int | np.integer):
            raise TypeError(
                "rng must be a numpy Generator or an int, also for tensors, got "
                f"{type(rng).__name__}"
            )
        check_integer("size", size, 0)
        if not isinstance(rng, np.random.Generator):
            check_integer("rng", rng, 0)
        rng = np.random.default_rng(rng)
        a = np.broadcast_to(to_numpy(self.concentration), (size, *self.concentration.shape))
        # Gamma(a) = Gamma(a + 1) U^(1/a), and -log U is exponential.
        log_gamma = np.log(rng.standard_gamma(a + 1)) - rng.standard_exponential(a.shape) / a
        return as_float(special.softmax(log_gamma, axis=-1), like=self.concentration)

    def update(self, counts: Array, *, nu: float = 1.0) -> Dirichlet:
        """Conjugate update Dir(alpha + nu * counts) of the (tempered) categorical model.

        Parameters
        ----------
        counts : array or tensor, shape (n, k) or (k,)
            Label counts, >= 0; ``np.eye(k)[y]`` for one label a row.
        nu : float, default=1.0
            Exponent of the likelihood, > 0: 1 is Bayes' rule (Prop. 2.2), else tempered (2.7).
        """
        check_positive_number("nu", nu)
        added = nu * counts_like(counts, self.concentration)
        log_added = log_or_minus_inf(namespace(added).sum(added, axis=-1))
        log_evidence = namespace(added).logaddexp(self.log_evidence, log_added)
        return type(self)(self.concentration + added, log_evidence, self.prior, self.caveat)


def _need_no_conversion(log_evidence: Array, proba: Array, prior: Array) -> bool:
    """Return whether all three are float64 arrays of shapes (n,), (n, k) and (k,)."""
    return (
        all(type(x) is np.ndarray and x.dtype == np.float64 for x in (log_evidence, proba, prior))
        and proba.ndim == 2
        and proba.shape[1] > 1
        and log_evidence.shape == proba.shape[:1]
        and prior.shape == proba.shape[1:]
    )


def _frozen(value: Array) -> Array:
    if is_tensor(value):
        return value
    value = np.array(value)
    value.flags.writeable = False
    return value


def concentration(log_evidence: Array, proba: Array, prior: Array, xp: Any = np) -> Array:
    """``prior + exp(log_evidence) * proba``, shape (n, k), of log-evidence (n,) and proba (n, k).

    The exponent ends where the dtype of `proba` does. That limits the display, not the ranking:
    log_evidence itself stays exact, and the mean is p to the last bit long before the limit. `xp`
    are the functions of the arrays.
    """
    top = DISPLAYED if proba.dtype == xp.float64 else DISPLAYED_FLOAT32
    evidence = xp.exp(xp.where(log_evidence > top, top, log_evidence))
    return prior + evidence[:, None] * proba


#: Least probability, and bounds of the strength, of Dirichlets that are matched to samples.
_LEAST_MEAN, _STRENGTHS = 1e-9, (0.05, 1e6)


def concentration_of_samples(samples: np.ndarray) -> np.ndarray:
    """Concentration (n, k) with the mean and the summed variances of samples (m, n, k).

    The variances of a Dirichlet of mean m and strength S add up to ``(1 - |m|^2) / (S + 1)``.
    Samples that agree have the largest strength, a million. One sample shows no variance.
    """
    if len(samples) < 2:
        raise ValueError(
            f"samples must have shape (m, n, k) with m >= 2, got {samples.shape}: one shows no "
            "variance; draw more for each input"
        )
    mean = np.clip(samples.mean(axis=0), _LEAST_MEAN, None)
    mean /= mean.sum(axis=1, keepdims=True)
    variance = np.maximum(samples.var(axis=0, ddof=1).sum(axis=1), _LEAST_MEAN)
    strength = np.clip((1 - (mean**2).sum(axis=1)) / variance - 1, *_STRENGTHS)
    return np.asarray(mean * strength[:, None])


def vacuity(log_evidence: Array, prior: Array) -> Array:
    """Share of the strength that is prior, ``alpha0 / (alpha0 + exp(log_evidence))``, (n,)."""
    xp = namespace(log_evidence)
    return special_functions(log_evidence).expit(xp.log(xp.sum(prior)) - log_evidence)


def log_or_minus_inf(x: Array) -> Array:
    """log(x), and -inf for x <= 0, without a warning."""
    xp = namespace(x)
    return xp.where(x > 0, xp.log(xp.where(x > 0, x, 1.0)), -np.inf)


def differential_entropy(alpha: Array) -> Array:
    """Return the entropy with respect to the first k - 1 probabilities, shape (n,).

    A Dirichlet is k independent Gamma variables less their sum, so this is a difference of Gamma
    entropies.
    """
    xp = namespace(alpha)
    s = xp.sum(alpha, axis=-1)
    psi = xp.log(s) + digamma_excess(s) - 1 / s
    entropies = gamma_entropy(with_sum(alpha, s))
    parts = xp.sum(entropies[..., :-1], axis=-1)
    return parts - entropies[..., -1] - (alpha.shape[1] - 1) * psi


def kl_divergence(a: Array, b: Array) -> Array:
    """KL of Dir(a) from Dir(b), shape (n,)."""
    xp = namespace(a)
    s, t = xp.sum(a, axis=-1), xp.sum(b, axis=-1)
    p, q = a / s[:, None], b / t[:, None]
    # t KL(q || p): its terms are non-negative, so nothing cancels
    leading = t * xp.sum(q * log_ratio(q, p) - (q - p), axis=-1)
    remainders = gamma_divergence_remainder(with_sum(a, s), with_sum(b, t))
    return leading + (xp.sum(remainders[..., :-1], axis=-1) - remainders[..., -1])


def with_sum(a: Array, total: Array) -> Array:
    """Return a (n, k) with its sum (n,) as one more column.

    Functions of both take half as many calls so, which is the time of a loss on a GPU.
    """
    return namespace(a).concat((a, total[..., None]), axis=-1)


def leading_classes(P: np.ndarray, most: int) -> np.ndarray:
    """Return ascending classes of P (n, k), at most `most` with others left over: shape (m,).

    The first class of each row before any other, then those that are largest in some row. A
    single class is never left over.
    """
    k = P.shape[1]
    if k <= most + 1:
        return np.arange(k)
    largest = P.max(axis=0, initial=0.0)
    largest[P.argmax(axis=1)] += 1
    return np.sort(np.argsort(-largest, kind="stable")[:most])


def sum_other_classes(alpha: Array, classes: np.ndarray) -> Array:
    """Return the ascending columns `classes` (m,) of alpha (n, k) and the sum of the others.

    Shape (n, m + 1), or (n, k) where no class is left. Sums of components of a Dirichlet are again
    Dirichlet.
    """
    rest = np.setdiff1d(np.arange(alpha.shape[1]), classes).tolist()
    if not rest:
        return alpha
    xp = namespace(alpha)
    summed = xp.sum(alpha[:, rest], axis=1)
    return xp.concat((alpha[:, classes.tolist()], summed[:, None]), axis=1)


def most_probable(concentration: np.ndarray, proba: np.ndarray) -> np.ndarray:
    """Return the class with the largest concentration, shape (n,); `proba` breaks ties.

    Far from the data the concentration is the prior to the last bit.
    """
    largest = concentration == concentration.max(axis=1, keepdims=True)
    return np.asarray(np.where(largest, proba, -1.0).argmax(axis=1))


def max_prob(P: np.ndarray) -> np.ndarray:
    """Return one minus the largest probability of P (n, k), shape (n,), in [0, 1 - 1/k]."""
    # Summed over the other classes: 1 - max is 0 for every confident row, and they all tie.
    others = np.sort(P, axis=1)[:, :-1]
    return np.asarray(others.sum(axis=1))


def confidence(P: np.ndarray) -> np.ndarray:
    """Return ``-log(max_prob)`` in nats, shape (n,): higher is surer, at most 27.6."""
    return np.asarray(-np.log(np.maximum(max_prob(P), LEAST_DOUBT)))


def entropy(P: np.ndarray) -> np.ndarray:
    """Return the entropy in nats of the rows of P (n, k), shape (n,), in [0, log k]."""
    return np.asarray(special.entr(P).sum(axis=1))
