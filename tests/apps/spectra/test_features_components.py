"""PrincipalComponents: scikit-learn's PCA, and what it adds to it."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.utils.estimator_checks import parametrize_with_checks

from dipedl.apps.spectra import PrincipalComponents

#: Ours, rows of 60 pixels, and the one of scikit-learn that it stands for.
SOLVERS = [
    ("exact", 30, "full"),
    ("exact", 31, "covariance_eigh"),
    ("exact", 300, "covariance_eigh"),
    ("randomized", 300, "randomized"),
]


@parametrize_with_checks([PrincipalComponents(1)])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(300, 60)) * np.linspace(3, 1, 60) + 5


@pytest.mark.parametrize(("solver", "n", "name"), SOLVERS)
def test_is_scikit_learns(solver, n, name, rows):
    rows = rows[:n]
    ours = PrincipalComponents(20, solver, random_state=3).fit(rows)
    theirs = PCA(20, svd_solver=name, random_state=3).fit(rows)
    np.testing.assert_array_equal(ours.components_, theirs.components_)
    np.testing.assert_array_equal(ours.explained_variance_, theirs.explained_variance_)
    np.testing.assert_array_equal(ours.explained_variance_ratio_, theirs.explained_variance_ratio_)
    np.testing.assert_allclose(ours.transform(rows), theirs.transform(rows), atol=1e-12)


@pytest.mark.parametrize("solver", ["exact", "randomized"])
@pytest.mark.parametrize("n", [30, 300])
def test_fit_transform_is_transform(solver, n, rows):
    components = PrincipalComponents(20, solver)
    found = components.fit_transform(rows[:n])
    np.testing.assert_array_equal(found, components.transform(rows[:n]))
    assert components.components_.flags.c_contiguous


def test_scikit_learns_own_fit_transform_differs(rows):
    """The reason for the method of ours; goes when this fails."""
    pca = PCA(20, svd_solver="randomized", iterated_power=0, random_state=0)
    assert np.abs(pca.fit_transform(rows) - pca.transform(rows)).max() > 0.1


def test_exact_components_need_no_seed(rows):
    a, b = (PrincipalComponents(20, random_state=seed).fit(rows) for seed in (0, 1))
    np.testing.assert_array_equal(a.components_, b.components_)
    rough = [PrincipalComponents(20, "randomized", s).fit(rows).components_ for s in (0, 0, 1)]
    np.testing.assert_array_equal(rough[0], rough[1])
    assert np.abs(rough[0] - rough[2]).max() > 0


def test_both_exact_solvers_agree(rows):
    few, many = (PCA(5, svd_solver=s).fit(rows[:40]) for s in ("full", "covariance_eigh"))
    np.testing.assert_allclose(few.components_, many.components_, atol=1e-9)


def test_solver_that_is_not_known(rows):
    with pytest.raises(ValueError, match="svd_solver must be 'exact' or 'randomized', got 'auto'"):
        PrincipalComponents(2, "auto").fit(rows)


@pytest.mark.parametrize("wanted", [0, 10, 61])
def test_more_components_than_the_rows_span(wanted, rows):
    with pytest.raises(ValueError, match=r"n_components must lie in 1\.\..*, got .*lower it, or"):
        PrincipalComponents(wanted).fit(rows if wanted > 10 else rows[:10])
    assert PrincipalComponents(9).fit(rows[:10]).components_.shape == (9, 60)
