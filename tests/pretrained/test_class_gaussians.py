import copy
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")

from dipedl.density import GDADensity  # noqa: E402
from dipedl.gaussians.factor import log_densities  # noqa: E402
from dipedl.pretrained import ClassGaussians  # noqa: E402

OF_NUMPY = {"full": "full", "tied": "tied", "diagonal": "diag"}
RTOL = {torch.float64: 1e-10, torch.float32: 1e-5}
forms = pytest.mark.parametrize("covariance", OF_NUMPY)
# Of low rank is tests/pretrained/test_low_rank_gaussians.py, but for what all have in common.
all_forms = pytest.mark.parametrize("covariance", [*OF_NUMPY, "low-rank"])


def problem(rng, n=300, p=6, k=3, offset=0.0):
    y = np.concatenate([np.arange(k), rng.integers(0, k, n - k)])
    X = rng.normal(size=(n, p)) @ rng.normal(size=(p, p)) + 3 * rng.normal(size=(k, p))[y]
    return X + offset, y


def fitted(density, X, y, *, sizes=(), k=None):
    k = int(max(y)) + 1 if k is None else k
    features, labels = torch.as_tensor(X), torch.as_tensor(y)
    for rows in np.split(np.arange(len(X)), np.cumsum(sizes)):
        density.update(features[rows], labels[rows], k)
    return density.finish()


def queries(X, rng):
    far = X[:20] + 5 * X.std() * rng.normal(size=(20, X.shape[1]))
    return torch.as_tensor(np.concatenate([X[:20], far]))


@forms
@pytest.mark.parametrize("shrinkage", ["oas", 0.1, None])
@pytest.mark.parametrize("dtype", RTOL)
@pytest.mark.parametrize("weights", ["equal", "empirical"])
def test_is_the_numpy_density(rng, covariance, shrinkage, dtype, weights):
    X, y = problem(rng)
    reference = GDADensity(OF_NUMPY[covariance], shrinkage, weights).fit(X, y)
    density = ClassGaussians(covariance, shrinkage=shrinkage, class_weights=weights, dtype=dtype)
    fitted(density, X, y, sizes=(100, 7))
    Q = queries(X, rng)
    scores = density(Q)
    assert scores.dtype is dtype
    np.testing.assert_allclose(scores, reference.score_samples(Q.numpy()), rtol=RTOL[dtype])
    np.testing.assert_allclose(
        density.class_log_density(Q), log_densities(reference.factors_, Q.numpy()), rtol=RTOL[dtype]
    )
    assert (density.n_, density.n_features_, density.n_classes_) == (300, 6, 3)


@forms
@given(data=st.data())
def test_any_chunking_far_from_zero(covariance, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    offset = data.draw(st.sampled_from([0.0, 1e6]))
    X, y = problem(rng, n=60, p=3, offset=offset)
    sizes = data.draw(st.lists(st.integers(0, 9), max_size=6))
    density = ClassGaussians(covariance, dtype=torch.float64)
    fitted(density, X, y, sizes=sizes)
    reference = GDADensity(OF_NUMPY[covariance]).fit(X, y)
    Q = queries(X, rng)
    np.testing.assert_allclose(density(Q), reference.score_samples(Q.numpy()), rtol=1e-10)


@forms
def test_blocks_of_wide_features(rng, covariance):
    X, y = problem(rng, n=150, p=350, k=2)
    reference = GDADensity(OF_NUMPY[covariance]).fit(X, y)
    Q = queries(X, rng)
    for dtype, rtol in RTOL.items():
        density = fitted(ClassGaussians(covariance, dtype=dtype), X, y)
        np.testing.assert_allclose(density(Q), reference.score_samples(Q.numpy()), rtol=rtol)


@forms
def test_float32_keeps_its_digits_where_classes_are_far_apart(rng, covariance):
    X, y = problem(rng, n=400, p=20, k=4)
    X += 1000 * rng.normal(size=(4, 20))[y]
    density = fitted(ClassGaussians(covariance), X, y)
    reference = GDADensity(OF_NUMPY[covariance]).fit(X, y)
    np.testing.assert_allclose(density(torch.as_tensor(X)), reference.score_samples(X), rtol=2e-4)


@forms
@pytest.mark.parametrize("half", [torch.float16, torch.bfloat16])
def test_half_precision_features_are_summed_in_float64(rng, covariance, half):
    X, y = problem(rng, offset=30.0)
    features = torch.as_tensor(X).to(half)
    density = fitted(ClassGaussians(covariance), features, y)
    exact = features.double().numpy()
    reference = GDADensity(OF_NUMPY[covariance]).fit(exact, y)
    scores = density(features)
    assert scores.dtype is torch.float32
    np.testing.assert_allclose(scores, reference.score_samples(exact), rtol=1e-5)


@all_forms
def test_autocast_changes_nothing(rng, covariance):
    X, y = problem(rng)
    Q = queries(X, rng).float()
    plain = fitted(ClassGaussians(covariance), X, y)
    with torch.autocast("cpu", torch.bfloat16):
        density = fitted(ClassGaussians(covariance), X, y)
        scores = density(Q)
    assert scores.dtype is torch.float32
    assert torch.equal(scores, plain(Q))


@all_forms
def test_inference_mode_leaves_it_usable(rng, covariance):
    X, y = problem(rng)
    density = ClassGaussians(covariance)
    with torch.inference_mode():
        fitted(density, X[:200], y[:200])
    features = torch.as_tensor(X[200:]).requires_grad_()
    density.update(features, torch.as_tensor(y[200:]), 3)
    density.finish()(features).sum().backward()
    assert features.grad.isfinite().all()
    np.testing.assert_allclose(
        density(features).detach(), fitted(density.blank(), X, y)(features).detach(), rtol=1e-5
    )


@all_forms
def test_state_moves_copies_and_loads(rng, covariance, tmp_path):
    X, y = problem(rng)
    Q = queries(X, rng).float()
    density = fitted(ClassGaussians(covariance), X, y)
    scores = density(Q)
    torch.save(density.state_dict(), tmp_path / "state.pt")
    loaded = density.blank()
    loaded.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    assert torch.equal(loaded(Q), scores)
    assert (loaded.n_, loaded.n_features_, loaded.n_classes_) == (300, 6, 3)
    nested = torch.nn.ModuleDict({"density": density.blank()})
    nested.load_state_dict(torch.nn.ModuleDict({"density": density}).state_dict())
    assert torch.equal(nested["density"](Q), scores)
    assert torch.equal(copy.deepcopy(density)(Q), scores)
    assert not list(density.parameters())
    assert all(buffer.device.type == "meta" for buffer in loaded.to("meta").buffers())
    halved = copy.deepcopy(density).half()
    assert torch.equal(halved(Q), scores)
    doubled = copy.deepcopy(density).double()(Q)
    assert doubled.dtype is torch.float64
    torch.testing.assert_close(doubled.float(), scores)


@all_forms
def test_a_copy_streams_on_by_itself(rng, covariance):
    X, y = problem(rng)
    Q = queries(X, rng)
    density = fitted(ClassGaussians(covariance, dtype=torch.float64), X[:200], y[:200])
    before = density(Q)
    other = copy.deepcopy(density)
    other.update(torch.as_tensor(X[200:]), torch.as_tensor(y[200:]), 3)
    assert torch.equal(other(Q), before)
    other.finish()
    assert torch.equal(density.finish()(Q), before)
    torch.testing.assert_close(other(Q), fitted(density.blank(), X, y)(Q), rtol=1e-10, atol=0)


@all_forms
@pytest.mark.slow
def test_compiles_and_exports_whole(rng, covariance):
    X, y = problem(rng)
    density = fitted(ClassGaussians(covariance), X, y)
    Q = queries(X, rng).float()
    compiled = torch.compile(density, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(Q), density(Q))
    rows = torch.export.Dim("rows", min=1)
    program = torch.export.export(density, (Q,), dynamic_shapes=({0: rows},))
    for n in (1, 3, 40):
        torch.testing.assert_close(program.module()(Q[:n]), density(Q[:n]))


@all_forms
def test_far_rows_and_rows_of_no_number(rng, covariance):
    X, y = problem(rng)
    density = fitted(ClassGaussians(covariance), X, y)
    Q = torch.as_tensor(X[:5], dtype=torch.float32)
    Q[1] = 1e30
    Q[2, 0] = torch.inf
    Q[3, 0] = torch.nan
    scores = density(Q)
    assert scores[[0, 4]].isfinite().all()
    assert (scores[1:3] == -torch.inf).all()
    assert scores[3].isnan()


@pytest.mark.parametrize("covariance", ["full", "diagonal"])
def test_a_class_of_one_point_takes_the_pooled_level(rng, covariance):
    X, y = problem(rng)
    X[y == 1] = X[1]
    reference = GDADensity(OF_NUMPY[covariance]).fit(X, y)
    density = fitted(ClassGaussians(covariance, dtype=torch.float64), X, y)
    Q = queries(X, rng)
    np.testing.assert_allclose(density(Q), reference.score_samples(Q.numpy()), rtol=1e-10)
    with pytest.raises(ValueError, match="class 1: all samples are the same point"):
        fitted(ClassGaussians(covariance, shrinkage=None), X, y)


def test_fewer_rows_than_features(rng):
    X, y = problem(rng, n=15, p=30)
    density = fitted(ClassGaussians(dtype=torch.float64), X, y)
    reference = GDADensity().fit(X, y)
    np.testing.assert_allclose(density(torch.as_tensor(X)), reference.score_samples(X), rtol=1e-10)
    remedy = re.escape("covariance='tied' or 'diagonal'")
    with pytest.raises(ValueError, match=f"class 0: .* is singular .*{remedy}"):
        fitted(ClassGaussians(shrinkage=None), X, y)


@pytest.mark.parametrize(
    ("features", "labels", "error", "message"),
    [
        (torch.zeros(4, 3, 2, 2), torch.zeros(4).long(), ValueError, "average maps"),
        (torch.zeros(4), torch.zeros(4).long(), ValueError, "shape"),
        (torch.zeros(4, 3).long(), torch.zeros(4).long(), TypeError, "floating"),
        (np.zeros((4, 3)), torch.zeros(4).long(), TypeError, "must be a tensor"),
        (torch.full((4, 3), torch.nan), torch.zeros(4).long(), ValueError, "row 0 holds nan"),
        (
            torch.full((4, 3), 7e4).half(),
            torch.zeros(4).long(),
            ValueError,
            "overflows at 65504: use bfloat16",
        ),
        (torch.zeros(4, 3), None, ValueError, "holds no labels"),
        (torch.zeros(4, 3), torch.zeros(4), ValueError, "labels must be class indices"),
        (torch.zeros(4, 3), torch.zeros(4).bool(), ValueError, "labels must be class indices"),
        (torch.zeros(4, 3), ["a", "b"], TypeError, "labels must be class indices"),
        (torch.zeros(4, 3), torch.zeros(3).long(), ValueError, "one class index a row"),
        (torch.zeros(4, 3), torch.tensor([0, 1, 2, 1]), ValueError, r"0\.\.1, got 0\.\.2"),
        (torch.zeros(4, 3), torch.tensor([0, -1, 1, 1]), ValueError, "number the classes from 0"),
    ],
)
def test_bad_batches_are_refused_and_leave_no_trace(features, labels, error, message):
    density = ClassGaussians()
    with pytest.raises(error, match=message):
        density.update(features, labels, 2)
    with pytest.raises(NotFittedError, match="finish needs rows"):
        density.finish()


def test_bad_order_of_calls(rng):
    X, y = problem(rng)
    density = ClassGaussians()
    features, labels = torch.as_tensor(X), torch.as_tensor(y)
    with pytest.raises(NotFittedError, match="call update for each batch, then finish"):
        density(features)
    with pytest.raises(NotFittedError, match="not fitted"):
        _ = density.n_
    assert not hasattr(density, "n_classes_")
    density.update(features[:0], labels[:0], 4)
    with pytest.raises(NotFittedError, match="none came"):
        density.finish()
    density.update(features, labels, 4)
    with pytest.raises(ValueError, match=r"classes \[3\] have no row among the 300 seen"):
        density.finish()
    with pytest.raises(ValueError, match="n_classes must stay 4 after the first update, got 3"):
        density.update(features, labels, 3)
    with pytest.raises(ValueError, match=r"number of features must stay 6 .* got 5"):
        density.update(features[:, :5], labels, 4)
    density.update(features[:3], torch.full((3,), 3), 4)
    density.finish()
    with pytest.raises(ValueError, match="6 columns, as in the fit, got 5"):
        density(features[:, :5])
    loaded = density.blank()
    loaded.load_state_dict(density.state_dict())
    with pytest.raises(ValueError, match="it scores, but holds no moments"):
        loaded.update(features, labels, 4)
    density.drop_moments()
    with pytest.raises(ValueError, match="it scores, but holds no moments"):
        density.update(features, labels, 4)


@pytest.mark.parametrize("dtype", RTOL)
def test_a_loader_may_write_into_its_last_batch(rng, dtype):
    X, y = map(torch.as_tensor, problem(rng))
    X, density = X.to(dtype), ClassGaussians()
    features, labels = torch.empty_like(X[:100]), torch.empty_like(y[:100])
    for start in (0, 100, 200):
        features.copy_(X[start : start + 100])
        labels.copy_(y[start : start + 100])
        density.update(features, labels, 3)
    expected = fitted(ClassGaussians(), X, y)
    torch.testing.assert_close(density.finish()(X), expected(X), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"covariance": "diag"}, ValueError),
        ({"shrinkage": "oracle"}, ValueError),
        ({"shrinkage": 1.5}, ValueError),
        ({"shrinkage": True}, ValueError),
        ({"class_weights": "balanced"}, ValueError),
        ({"rank": 0}, ValueError),
        ({"rank": 2.5}, TypeError),
        ({"dtype": torch.float16}, ValueError),
    ],
)
def test_bad_settings(settings, error):
    with pytest.raises(error, match=f"{next(iter(settings))} must be"):
        ClassGaussians(**settings)


def test_what_float32_cannot_hold_is_refused(rng):
    X, y = problem(rng)
    with pytest.raises(ValueError, match=r"overflows torch.float32; .* dtype=torch.float64"):
        fitted(ClassGaussians(), 1e-42 * X, y)
    fitted(ClassGaussians(dtype=torch.float64), 1e-42 * X, y)


@forms
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_finish_that_fails_leaves_what_scores(rng, covariance):
    """Parts of the new factors stood beside the old ones."""
    X, y = problem(rng)
    density = fitted(ClassGaussians(covariance), X, y)
    before = {name: value.clone() for name, value in density.state_dict().items()}
    density.update(torch.full((1, X.shape[1]), 1e42, dtype=torch.float64), torch.tensor([0]), 3)
    with pytest.raises(ValueError, match=r"overflows torch.float32"):
        density.finish()
    after = density.state_dict()
    assert after.keys() == before.keys()
    assert all(torch.equal(after[name], value) for name, value in before.items())


def test_moments_that_do_not_fit_are_refused():
    density = ClassGaussians()
    message = "'full' of 100 classes and 100000 features does not fit .* covariance='tied'"
    with pytest.raises(MemoryError, match=message):
        density.update(torch.zeros(1, 100_000), torch.zeros(1).long(), 100)
