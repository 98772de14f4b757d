"""Z-scores merge; the merged one is that of all scores."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from dipedl.evidence import RobustZScore, ZScore


@given(seed=st.integers(0, 1000), cut=st.integers(2, 38), offset=st.sampled_from([0.0, 1e6]))
def test_the_sum_is_the_fit_of_both(seed, cut, offset):
    rng = np.random.default_rng(seed)
    s, w = offset + rng.normal(size=40), rng.uniform(0.1, 3, 40)
    a, b = ZScore().fit(s[:cut], w[:cut]), ZScore().fit(s[cut:], w[cut:], source="elsewhere")
    whole, both = ZScore().fit(s, w), a + b
    np.testing.assert_allclose(
        [both.location_, both.scale_, both.n_], [whole.location_, whole.scale_, whole.n_], rtol=1e-9
    )
    assert both.source_ == "the log-densities given to fit and elsewhere"


def test_only_fitted_z_scores_merge():
    fitted = ZScore().fit([0.0, 1.0])
    with pytest.raises(NotFittedError):
        fitted + ZScore()
    with pytest.raises(TypeError):
        fitted + RobustZScore().fit([0.0, 1.0, 3.0])
