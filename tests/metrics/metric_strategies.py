"""Random data for the tests of metrics: small, full of ties, with infinities."""

import numpy as np
from hypothesis import strategies as st

#: Rounding of sums of at most a few hundred terms of order one.
EXACT = {"rtol": 1e-12, "atol": 1e-13}

_TIED = st.sampled_from([-np.inf, -2.5, -1.0, 0.0, 0.1, 0.5, 1.0, 3.0, np.inf])
_FREE = st.floats(-1e3, 1e3, width=32)


def scores(min_size=1, max_size=25):
    """Uncertainties (n,): either few values, so that ties abound, or any finite floats."""
    return st.one_of(
        st.lists(_TIED, min_size=min_size, max_size=max_size),
        st.lists(_FREE, min_size=min_size, max_size=max_size),
    ).map(np.array)


@st.composite
def labelled(draw, max_n=25):
    """Class indices (n,) and probabilities (n, k) with repeated rows and tied classes."""
    n, k = draw(st.integers(1, max_n)), draw(st.integers(2, 5))
    counts = draw(
        st.lists(
            st.lists(st.integers(0, 4), min_size=k, max_size=k).filter(any), min_size=n, max_size=n
        )
    )
    y = draw(st.lists(st.integers(0, k - 1), min_size=n, max_size=n))
    counts = np.array(counts, dtype=float)
    return np.array(y), counts / counts.sum(axis=1, keepdims=True)


@st.composite
def answers(draw, max_n=25):
    """Whether each answer is right (n,) and its uncertainty (n,)."""
    uncertainty = draw(scores(max_size=max_n))
    n = len(uncertainty)
    correct = draw(st.lists(st.booleans(), min_size=n, max_size=n))
    return np.array(correct), uncertainty


def stacked(u_in, u_out):
    """Labels (OOD = 1) and dense ranks for scikit-learn, which refuses infinities."""
    _, rank = np.unique(np.concatenate([u_in, u_out]), return_inverse=True)
    return np.repeat([0, 1], [len(u_in), len(u_out)]), rank
