import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import multivariate_normal
from sklearn.decomposition import PCA

torch = pytest.importorskip("torch")

from dipedl.density import GDADensity  # noqa: E402
from dipedl.gaussians.factor import log_densities  # noqa: E402
from dipedl.pretrained import ClassGaussians, class_gaussians  # noqa: E402
from dipedl.pretrained.class_moments import leading_rows  # noqa: E402

K = 3


def problem(rng, n=400, p=12, spread=(4, 3, 2), noise=0.5, offset=0.0):
    """Rows near a subspace of each class."""
    y = np.concatenate([np.arange(K), rng.integers(0, K, n - K)])
    axes = rng.normal(size=(K, len(spread), p)) * np.array(spread)[:, None]
    X = np.einsum("nr,nrp->np", rng.normal(size=(n, len(spread))), axes[y])
    X += 3 * rng.normal(size=(K, p))[y] + noise * rng.normal(size=(n, p))
    return X + offset, y


def fitted(X, y, *, k=K, cuts=(), absorb=True, **settings):
    density = ClassGaussians("low-rank", **{"dtype": torch.float64} | settings)
    for rows in np.split(np.arange(len(y)), cuts):
        density.update(torch.as_tensor(X[rows]), torch.as_tensor(y[rows]), k)
        if absorb:
            density._add_waiting()
    return density.finish()


@pytest.mark.parametrize(("rank", "p"), [(11, 12), (12, 12), (50, 12)])
@pytest.mark.parametrize("shrinkage", [None, 0.2, "oas"])
@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_is_the_full_gaussian_where_the_rank_suffices(rng, rank, p, shrinkage, offset):
    X, y = problem(rng, p=p, offset=offset)
    reference = GDADensity(shrinkage=shrinkage).fit(X, y)
    density = fitted(X, y, cuts=(90, 97, 250), rank=rank, shrinkage=shrinkage)
    Q = np.concatenate([X, X + 5 * rng.normal(size=X.shape)])
    found = density.class_log_density(torch.as_tensor(Q))
    np.testing.assert_allclose(found, log_densities(reference.factors_, Q), rtol=1e-10)
    single = fitted(X, y, rank=rank, shrinkage=shrinkage, dtype=torch.float32)
    # The variance across is what a float32 sketch leaves of the trace: a thousandth of it here.
    np.testing.assert_allclose(single(torch.as_tensor(Q)), reference.score_samples(Q), rtol=1e-3)


@given(data=st.data())
def test_any_chunking_of_rows_that_span_few_dimensions(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    X, y = problem(rng, n=60, p=9, noise=0.0)
    cuts = sorted(data.draw(st.lists(st.integers(0, 60), max_size=5)))
    density = fitted(X, y, cuts=cuts, rank=3)
    reference = GDADensity().fit(X, y)
    np.testing.assert_allclose(density(torch.as_tensor(X)), reference.score_samples(X), rtol=1e-9)


def test_is_probabilistic_pca_to_the_bound_of_the_sketch(rng):
    X, y = problem(rng, n=1500, p=60, spread=(4, 3, 2, 1.5, 1))
    density = fitted(X, y, cuts=range(50, 1500, 50), rank=5, shrinkage=None)
    found = density.class_log_density(torch.as_tensor(X)).numpy()
    for c in range(K):
        rows = X[y == c]
        pca = PCA(5).fit(rows)
        # scikit-learn divides by n - 1
        ours = (len(rows) - 1) / len(rows)
        pca.explained_variance_ *= ours
        pca.noise_variance_ *= ours
        # what the guards lost at each decomposition moved between noise and directions
        np.testing.assert_allclose(found[:, c], pca.score_samples(X), rtol=1e-3)
        values = density.distance.inner[c]
        np.testing.assert_allclose(values, pca.explained_variance_, rtol=1e-4)
        np.testing.assert_allclose(density.distance.outer[c], pca.noise_variance_, rtol=1e-3)
        trace = values.sum() + 55 * density.distance.outer[c]
        np.testing.assert_allclose(trace, rows.var(0).sum(), rtol=1e-12)


@given(
    seed=st.integers(0, 99),
    a=st.integers(1, 40),
    rank=st.integers(1, 12),
    guards=st.integers(1, 6),
)
def test_the_sketch_keeps_its_bound(seed, a, rank, guards):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(a, 15)) * 0.8 ** np.arange(15)
    size = rank + guards
    sketch = leading_rows(rows, size, rank)
    assert sketch.shape == (size, 15)
    lost = np.linalg.eigvalsh(rows.T @ rows - sketch.T @ sketch)
    squares = np.sort(np.linalg.svd(rows, compute_uv=False) ** 2)[::-1]
    squares = np.append(squares, np.zeros(size + 1))
    scale = squares[0] * 1e-12
    # 0 <= lost <= the first value left out
    assert -scale < lost[0] and lost[-1] < squares[size] + scale
    products = sketch @ sketch.T
    np.testing.assert_allclose(products, np.diag(products.diagonal()), atol=scale)
    np.testing.assert_allclose(products.diagonal()[:rank], squares[:rank], atol=scale)
    guarded = np.append((squares[rank:size] - squares[size]).clip(0), np.zeros(size))
    np.testing.assert_allclose(products.diagonal()[rank:], guarded[: size - rank], atol=scale)


def test_batches_wait_for_each_other(rng, monkeypatch):
    X, y = problem(rng, n=300, p=40)
    waiting = fitted(X, y, cuts=range(30, 300, 30), absorb=False, rank=4)
    at_once = fitted(X, y, absorb=False, rank=4)
    torch.testing.assert_close(
        waiting(torch.as_tensor(X)), at_once(torch.as_tensor(X)), rtol=1e-10, atol=0
    )
    monkeypatch.setattr(class_gaussians, "_PENDING_BYTES", 1)
    never = fitted(X, y, cuts=range(30, 300, 30), absorb=False, rank=4)
    eager = fitted(X, y, cuts=range(30, 300, 30), rank=4)
    assert torch.equal(never(torch.as_tensor(X)), eager(torch.as_tensor(X)))


def test_more_classes_than_one_block(rng):
    k = 70
    y = np.arange(10 * k) % k
    X = rng.normal(size=(10 * k, 6)) + 4 * rng.normal(size=(k, 6))[y]
    density = ClassGaussians("low-rank", rank=6, dtype=torch.float64)
    density.update(torch.as_tensor(X), torch.as_tensor(y), k)
    reference = GDADensity().fit(X, y)
    scores = density.finish()(torch.as_tensor(X))
    np.testing.assert_allclose(scores, reference.score_samples(X), rtol=1e-10)


def test_fewer_rows_than_directions_and_a_class_of_one_point(rng):
    X, y = problem(rng, n=40, p=50)
    X[y == 1] = X[1]
    density = fitted(X, y, rank=20)
    reference = GDADensity().fit(X, y)
    np.testing.assert_allclose(density(torch.as_tensor(X)), reference.score_samples(X), rtol=1e-9)
    with pytest.raises(ValueError, match=r"class 0: the covariance of 50 .* singular .*'oas'"):
        fitted(X, y, rank=20, shrinkage=None)
    with pytest.raises(ValueError, match="class 0: all samples are the same point"):
        fitted(np.ones((9, 4)), np.arange(9) % 3, shrinkage=None)


def test_exports_loads_and_keeps_its_gradient(rng):
    X, y = problem(rng, p=6)
    density = fitted(X, y, rank=4)
    Q = torch.as_tensor(X[:30])
    rows = torch.export.Dim("rows", min=1)
    program = torch.export.export(density, (Q,), dynamic_shapes=({0: rows},))
    torch.testing.assert_close(program.module()(Q[:7]), density(Q[:7]))
    loaded = density.blank()
    loaded.load_state_dict(density.state_dict())
    assert torch.equal(loaded(Q), density(Q))
    assert torch.autograd.gradcheck(density, Q[:5].clone().requires_grad_())


def test_integrates_to_one(rng):
    X, y = problem(rng, n=200, p=2, spread=(2,))
    density = fitted(X, y, rank=1)
    proposal = multivariate_normal(X.mean(0), 4 * np.cov(X.T))
    Q = proposal.rvs(40_000, random_state=0)
    ratio = np.exp(density(torch.as_tensor(Q)).numpy() - proposal.logpdf(Q))
    assert abs(ratio.mean() - 1) < 5 * ratio.std() / 200


@pytest.mark.parametrize("rank", [2, 3, 5, 9])
@pytest.mark.parametrize("shrinkage", [0.1, "oas"])
def test_rank_beyond_the_dimensions_that_a_class_spans(rank, shrinkage):
    """As of units that are dead for a class; rows that rounding leaves point anywhere."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = problem(rng, n=60, p=5, spread=(3,), noise=0.0)
        Q = np.concatenate([X, X + rng.normal(size=X.shape)])
        density = fitted(X, y, cuts=range(7, 60, 7), rank=rank, shrinkage=shrinkage)
        wanted = GDADensity(shrinkage=shrinkage).fit(X, y).score_samples(Q)
        np.testing.assert_allclose(density(torch.as_tensor(Q)), wanted, rtol=1e-9)
        with pytest.raises(ValueError, match=r"class 0: the covariance of 5 .* singular"):
            fitted(X, y, cuts=range(7, 60, 7), rank=rank, shrinkage=None)


def test_a_direction_is_no_narrower_than_the_rest():
    """A sketch of one direction keeps the first, though most rows lie along the two others."""
    axes = np.tile([1, 1, 2, 2], 15)
    X = np.concatenate([[[4, 0, 0], [-4, 0, 0]], 2 * np.eye(3)[axes]])
    X[3::2] *= -1
    y = np.zeros(len(X), int)
    density = fitted(X, y, k=1, cuts=range(1, len(X)), rank=1, shrinkage=None)
    assert density.distance.inner.item() == density.distance.outer.item()
    np.testing.assert_allclose(density.distance.outer, 120 / 62)
