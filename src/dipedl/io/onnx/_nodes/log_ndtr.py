"""log Phi as a polynomial, for graphs that have no such function."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from scipy import special

_DEGREE = 22


@lru_cache(maxsize=1)
def erfc_coefficients() -> np.ndarray:
    """Coefficients c of ``log erfc(x) = log t - x^2 + sum_i c_i (2 t - 1)^i``, x >= 0, ascending.

    With ``t = 2 / (2 + x)``: the form of Press et al., "Numerical Recipes", 3rd ed., section 6.2.2,
    fitted to scipy's erfcx.
    """

    def remainder(v: np.ndarray) -> np.ndarray:
        t = (v + 1) / 2
        return np.asarray(np.log(special.erfcx(2 / t - 2)) - np.log(t))

    # Chebyshev points of the first kind stay clear of t = 0, where x is infinite.
    fitted = Chebyshev.interpolate(remainder, _DEGREE)
    return np.asarray(fitted.convert(kind=Polynomial).coef)
