"""The whole of scikit-learn's contract, for one baseline that trains a network.

Others fit and answer by the same class, as `TorchClassifier`, of which every check runs.
"""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

pytest.importorskip("torch")

from dipedl.baselines import ReEDL
from dipedl.networks import MLP, Training

NETWORK, TRAINING = MLP((16,)), Training(epochs=20, batch_size=16, learning_rate=0.02, n_jobs=1)

#: An answer depends on the other rows it is asked with in the last digits of float32; the check
#: allows 1e-7. The check of our own (`dipedl.testing`) allows what float32 needs.
EXPECTED = {"check_methods_subset_invariance": "networks answer in float32"}


def expected(estimator):
    return EXPECTED


@pytest.mark.slow
@parametrize_with_checks(
    [ReEDL(NETWORK, TRAINING)],
    expected_failed_checks=expected,
)
def test_sklearn_contract(estimator, check):
    check(estimator)
