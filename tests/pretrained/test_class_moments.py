import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

import torch.distributed as dist  # noqa: E402
from torch import multiprocessing  # noqa: E402

from dipedl.gaussians.moments import Moments, pool  # noqa: E402
from dipedl.networks.class_moments import (  # noqa: E402
    ClassMoments,
    DiagonalScatter,
    FullScatter,
    TiedScatter,
)
from dipedl.pretrained import ClassGaussians  # noqa: E402

K, P = 3, 4
FORMS = ["full", "tied", "diagonal", "low-rank"]  # of a rank that suffices


def rows_of(rng, n, offset=0.0, classes=K):
    y = rng.integers(0, classes, n)
    return rng.gamma(0.5, 3, size=(n, P)) + rng.normal(size=(K, P))[y] + offset, y


def blank(scatter):
    origin = torch.zeros(K, P, dtype=torch.float64)
    return ClassMoments(scatter(origin), origin)


def streamed(scatter, X, y, cuts=()):
    moments = blank(scatter)
    for rows in np.split(np.arange(len(y)), cuts):
        if len(rows):
            moments.add(torch.tensor(X[rows]), torch.tensor(y[rows]))
    return moments


def assert_same(found, wanted):
    scale = np.sqrt(wanted.trace / wanted.weight) or 1.0
    assert found.weight == wanted.weight
    gap = (found.origin - wanted.origin) + (found.offset - wanted.offset)
    np.testing.assert_allclose(gap / scale, 0, atol=1e-10)
    unit = scale**2 * wanted.weight
    np.testing.assert_allclose(found.scatter / unit, wanted.scatter / unit, atol=1e-9)


@pytest.mark.parametrize("scatter", [FullScatter, DiagonalScatter])
@given(data=st.data())
def test_any_chunks_and_merges_give_the_moments_of_numpy(scatter, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    offset = data.draw(st.sampled_from([0.0, 1e6]))
    X, y = rows_of(rng, data.draw(st.integers(1, 40)), offset)
    cut = data.draw(st.integers(0, len(y)))
    inner = sorted(data.draw(st.lists(st.integers(0, len(y)), max_size=4)))
    total = streamed(scatter, X[:cut], y[:cut], inner)
    total += streamed(scatter, X[cut:], y[cut:], inner)
    for c, found in enumerate(total.per_class()):
        rows = np.flatnonzero(y == c)
        assert found.weight == len(rows)
        if len(rows):
            diagonal = scatter is DiagonalScatter
            assert_same(found, Moments.of(X, rows=rows, diagonal=diagonal))


@given(data=st.data())
def test_the_tied_scatter_is_that_of_the_residuals(data):
    rng = np.random.default_rng(data.draw(st.integers(0, 999)))
    offset = data.draw(st.sampled_from([0.0, 1e6]))
    X, y = rows_of(rng, data.draw(st.integers(1, 40)), offset)
    cut = data.draw(st.integers(0, len(y)))
    total = streamed(TiedScatter, X[:cut], y[:cut], [cut // 2])
    total += streamed(TiedScatter, X[cut:], y[cut:])
    residuals = np.concatenate([X[y == c] - X[y == c].mean(0) for c in np.unique(y)])
    pooled = total.pool()
    assert pooled.weight == len(y)
    np.testing.assert_allclose(pooled.scatter, residuals.T @ residuals, atol=1e-7 * len(y))
    assert_same(pooled, pool(streamed(FullScatter, X, y).per_class()))


def test_rows_that_are_all_the_same_have_no_scatter_at_all():
    X = np.full((9, P), 0.1) + np.arange(P)
    for scatter in (FullScatter, DiagonalScatter):
        moments = streamed(scatter, X, np.zeros(9, int), [1, 4])
        assert not moments.scatter.sums.any()


def part(rank, offset):
    """Rows of one process: it lacks class 2 (first) or class 0 (second)."""
    rng = np.random.default_rng(rank)
    X, y = rows_of(rng, 50 + 9 * rank, offset + 5 * rank, classes=K - 1)
    return torch.tensor(X), torch.tensor(y + rank)


def density_of(covariance):
    return ClassGaussians(covariance, dtype=torch.float64)


def process(rank, folder):
    """What one of two processes does; leaves its scores in `folder`."""
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2)
    scores = {}
    for covariance, offset in itertools.product(FORMS, (0.0, 1e6)):
        density, (X, y) = density_of(covariance), part(rank, offset)
        density.update(X[:20], y[:20], K)
        density.finish(dist.group.WORLD)
        if rank:
            # the other has nothing new to tell
            density.update(X[20:], y[20:], K)
        density.finish(dist.group.WORLD)
        scores[covariance, offset] = (density(X), density.n_)
    one_sided = density_of("full")
    if rank:
        one_sided.update(torch.cat([part(r, 0.0)[0] for r in (0, 1)]), _labels(), K)
    scores["one sided"] = one_sided.finish(dist.group.WORLD)(part(0, 0.0)[0])
    for name, p in (("none", 0), ("different", P + rank)):
        density = density_of("full")
        if p:
            density.update(torch.zeros(1, p), torch.tensor([0]), K)
        try:
            density.finish(dist.group.WORLD)
        except ValueError as error:
            scores[name] = str(error)
    torch.save(scores, f"{folder}/{rank}.pt")
    dist.destroy_process_group()


def _labels():
    return torch.cat([part(r, 0.0)[1] for r in (0, 1)])


@pytest.mark.slow
def test_two_processes_end_with_the_density_of_one(tmp_path):
    multiprocessing.spawn(process, args=(str(tmp_path),), nprocs=2)
    found = [torch.load(tmp_path / f"{rank}.pt") for rank in (0, 1)]
    for covariance, offset in itertools.product(FORMS, (0.0, 1e6)):
        (A, a), (B, b) = (part(rank, offset) for rank in (0, 1))
        density = density_of(covariance)
        density.update(torch.cat([A[:20], B]), torch.cat([a[:20], b]), K)
        density.finish()
        for scores, X in zip(found, (A, B), strict=True):
            score, n = scores[covariance, offset]
            assert n == 79
            torch.testing.assert_close(score, density(X), rtol=1e-10, atol=0)
    density = density_of("full")
    density.update(torch.cat([part(r, 0.0)[0] for r in (0, 1)]), _labels(), K)
    for scores in found:
        wanted = density.finish()(part(0, 0.0)[0])
        torch.testing.assert_close(scores["one sided"], wanted, rtol=1e-10, atol=0)
        assert scores["none"].endswith("got (classes, features) [None, None]")
        assert scores["different"].endswith("[(3, 4), (3, 5)]")
