import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")

from dipedl.datasets import load_mini_mnist  # noqa: E402
from dipedl.nn import SmallCNN  # noqa: E402


def toy(rng, n=60):
    """8 x 8 images: class "b" has a bright left half."""
    y = np.array(["a", "b"])[np.arange(n) % 2]
    X = rng.uniform(0, 0.6, (n, 8, 8))
    X[y == "b", :, :4] += 0.4
    return X.reshape(n, 64), y


@pytest.fixture
def fitted(rng):
    X, y = toy(rng)
    return SmallCNN((8, 8), epochs=4, batch_size=8).fit(X, y), X, y


def test_learns_and_answers_in_the_order_of_its_classes(fitted):
    cnn, X, y = fitted
    P = cnn.predict_proba(X)
    assert P.dtype == np.float64 and P.shape == (60, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert list(cnn.classes_) == ["a", "b"]
    assert cnn.score(X, y) > 0.95
    np.testing.assert_array_equal(cnn.predict(X), cnn.classes_[P.argmax(axis=1)])


def test_features_are_those_before_the_last_layer(fitted):
    cnn, X, _ = fitted
    F = cnn.transform(X)
    assert F.shape == (60, 64) and F.dtype == np.float64
    last = cnn.module_[-1]
    logits = F @ last.weight.detach().numpy().T + last.bias.detach().numpy()
    expected = np.exp(logits - logits.max(axis=1, keepdims=True))
    expected /= expected.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(cnn.predict_proba(X), expected, rtol=1e-9, atol=1e-12)


def test_an_answer_does_not_depend_on_the_other_rows(fitted):
    cnn, X, _ = fitted
    one_by_one = np.concatenate([cnn.predict_proba(x[None]) for x in X])
    np.testing.assert_allclose(cnn.predict_proba(X), one_by_one, rtol=1e-11)
    many = np.tile(X, (20, 1))  # more than one chunk
    np.testing.assert_allclose(cnn.transform(many)[-60:], cnn.transform(X), rtol=1e-11, atol=1e-12)


def test_same_seed_same_network_and_no_global_state_touched(rng):
    X, y = toy(rng)
    settings = dict(image_shape=(8, 8), epochs=1, n_jobs=1)
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    first = SmallCNN(**settings).fit(X, y).predict_proba(X)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.manual_seed(1)
    np.testing.assert_array_equal(SmallCNN(**settings).fit(X, y).predict_proba(X), first)
    other = SmallCNN(**settings, random_state=1).fit(X, y).predict_proba(X)
    assert not np.array_equal(other, first)


def test_clones_and_pickles(fitted):
    cnn, X, _ = fitted
    assert clone(cnn).get_params() == cnn.get_params()
    again = pickle.loads(pickle.dumps(cnn))
    np.testing.assert_array_equal(again.predict_proba(X), cnn.predict_proba(X))


def test_does_not_change_its_input_and_takes_read_only_rows(rng):
    X, y = toy(rng)
    X.flags.writeable = False
    before = X.copy()
    SmallCNN((8, 8), epochs=1).fit(X, y).predict_proba(X)
    np.testing.assert_array_equal(X, before)


def test_refuses_what_it_cannot_do(rng):
    X, y = toy(rng)
    with pytest.raises(
        ValueError, match=r"X must have 28 \* 28 = 784 columns.*pass the image_shape"
    ):
        SmallCNN().fit(X, y)
    with pytest.raises(ValueError, match="y must hold at least 2 classes"):
        SmallCNN((8, 8)).fit(X, np.zeros(60))
    with pytest.raises(NotFittedError):
        SmallCNN((8, 8)).predict_proba(X)
    with pytest.raises(ValueError, match="64"):
        SmallCNN((8, 8), epochs=1).fit(X, y).predict_proba(X[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        SmallCNN((8, 8)).fit(np.where(X > 0.5, np.nan, X), y)


@pytest.mark.slow
def test_digits():
    data = load_mini_mnist()
    cnn = SmallCNN(n_jobs=1).fit(data.X_train, data.y_train)
    # 0.975 to 0.98 over seeds; 5 binomial standard deviations below
    assert cnn.score(data.X_test, data.y_test) > 0.95


def test_without_a_seed_it_trains_all_the_same():
    X, y = np.random.default_rng(0).random((40, 784)), np.arange(40) % 2
    clf = SmallCNN(random_state=None, epochs=1).fit(X, y)
    assert clf.predict_proba(X).shape == (40, 2)
