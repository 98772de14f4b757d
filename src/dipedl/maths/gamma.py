"""Remainders of the gamma function, once for numpy arrays and torch tensors.

With concentrations near 1e12 the terms of a Dirichlet entropy are near 1e13 and their difference
near 1: float64 keeps three digits. Written with these remainders, the large parts cancel on paper,
and nothing is lost from 1e-8 to 1e12. Series: NIST Digital Library of Mathematical Functions, 5.11.
"""

from __future__ import annotations

from .arrays import LOG_2PI, Array, namespace, special_functions

# Above this the truncated series below are exact to 1e-13 relative; under it the direct difference
# is.
_SWITCH = 16.0
_HALF_LOG_2PI = 0.5 * LOG_2PI


def _series(x: Array, coefficients: tuple[float, ...]) -> Array:
    """sum_j c_j / x^(j+1), by Horner's rule."""
    inverse = 1.0 / x
    *lower, highest = coefficients
    total = highest * inverse
    for c in reversed(lower):
        total = (total + c if c else total) * inverse
    return total


def _split(x: Array) -> tuple[Array, Array]:
    """`x` clipped to either side of the switch: no branch of a `where` can overflow."""
    # By `where`, because the slope of a minimum of two equal numbers is a half.
    xp, below = namespace(x), x < _SWITCH
    return xp.where(below, x, _SWITCH), xp.where(below, _SWITCH, x)


def digamma_excess(x: Array) -> Array:
    """psi(x + 1) - log(x), about 1/(2x) for large x; x > 0."""
    xp = namespace(x)
    small, large = _split(x)
    series = _series(large, (1 / 2, -1 / 12, 0, 1 / 120, 0, -1 / 252, 0, 1 / 240))
    return xp.where(x < _SWITCH, special_functions(x).psi(small + 1) - xp.log(small), series)


def stirling_error(x: Array) -> Array:
    """Log Gamma(x) - [(x - 1/2) log x - x + log(2 pi)/2], about 1/(12x) for large x; x > 0."""
    xp = namespace(x)
    small, large = _split(x)
    special = special_functions(x)
    direct = special.gammaln(small) - (small - 0.5) * xp.log(small) + small - _HALF_LOG_2PI
    series = _series(large, (1 / 12, 0, -1 / 360, 0, 1 / 1260, 0, -1 / 1680))
    return xp.where(x < _SWITCH, direct, series)


def gamma_entropy(x: Array) -> Array:
    """Differential entropy of Gamma(x, 1): x + log Gamma(x) + (1 - x) psi(x); x > 0."""
    xp = namespace(x)
    small, large = _split(x)
    special = special_functions(x)
    direct = small + special.gammaln(small) + (1 - small) * special.psi(small)
    coefficients = (-1 / 3, -1 / 12, -1 / 90, 1 / 120, 1 / 210, -1 / 252, -1 / 210, 1 / 240)
    series = 0.5 * xp.log(large) + _HALF_LOG_2PI + 0.5 + _series(large, coefficients)
    return xp.where(x < _SWITCH, direct, series)


def log_ratio(numerator: Array, denominator: Array) -> Array:
    """log(numerator / denominator), accurate where the two are close."""
    xp = namespace(numerator)
    difference = numerator - denominator
    near = xp.abs(difference / denominator) < 0.5
    # Chosen before the division: the slope of the other branch would overflow, and 0 * inf is NaN.
    relative = xp.where(near, difference, difference * 0) / denominator
    return xp.where(near, xp.log1p(relative), xp.log(numerator) - xp.log(denominator))


def gamma_divergence_remainder(a: Array, b: Array) -> Array:
    """KL(Gamma(a,1) || Gamma(b,1)) less its leading part ``b log(b/a) - b + a``."""
    change = stirling_error(b) - stirling_error(a)
    return change - 0.5 * log_ratio(b, a) - (b - a) * (digamma_excess(a) - 1.0 / a)
