"""Weights of classes, against rows that are really there more often."""

import copy

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from dipedl.networks import MLP, TorchClassifier, Training  # noqa: E402

QUICK = Training(2, 16, n_jobs=1)


@pytest.fixture(scope="module")
def rare():
    """Two classes that overlap, one of them ten times as frequent."""
    rng = np.random.default_rng(0)
    y = np.where(np.arange(660) % 11 == 0, "quasar", "galaxy")
    return rng.normal(size=(660, 2)) + 1.2 * (y == "quasar")[:, None], y


def test_weights_stand_for_copies_of_the_rows():
    """With all rows in one batch, weight 3 is that class three times over, but for a constant."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 3 == 0
    copies = np.repeat(np.arange(30), np.where(y, 3, 1))
    # plain gradient descent: a step is the gradient of the mean over 30 rows, or over 50
    settings = Training(6, 1000, "sgd", 0.1, momentum=0.0, n_jobs=1)
    longer = Training(6, 1000, "sgd", 0.1 * 50 / 30, momentum=0.0, n_jobs=1)
    weighted = TorchClassifier(MLP((4,), "tanh"), settings, class_weight={True: 3.0}).fit(X, y)
    repeated = TorchClassifier(MLP((4,), "tanh"), longer).fit(X[copies], y[copies])
    np.testing.assert_allclose(weighted.logits(X), repeated.logits(X), atol=1e-5)
    np.testing.assert_allclose(
        np.array(weighted.history_.loss) * 30, np.array(repeated.history_.loss) * 50, rtol=1e-5
    )


def test_a_step_copies_no_weights(rare):
    """A GPU would wait for the copy, and a recorded one reads memory that is free by then."""

    class Operations(TorchDispatchMode):
        def __torch_dispatch__(self, operation, types, arguments=(), keywords=None):
            names.append(operation.overloadpacket.__name__)
            return operation(*arguments, **(keywords or {}))

    model, names = TorchClassifier(MLP((2,)), QUICK, class_weight="balanced").fit(*rare), []
    losses, y = torch.rand(9), torch.arange(9) % 2
    with Operations():
        model.weighted_mean(losses, y)
    assert names == ["index", "mul", "mean"]


def test_the_validation_score_has_the_weights_too(rare):
    X, y = rare
    settings = Training(1, 64, n_jobs=1)
    model = TorchClassifier(MLP((4,)), settings, class_weight="balanced")
    model.fit(X, y, validation=(X[:100], y[:100]))
    P = model.predict_proba(X[:100])
    each = -np.log(np.where(y[:100] == "quasar", P[:, 1], P[:, 0]))
    w = model.class_weight_[(y[:100] == "quasar").astype(int)]
    np.testing.assert_allclose(model.history_.score, [np.mean(w * each)], rtol=1e-5)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ("balance", ValueError, "class_weight.*'balanced'.*Got 'balance'"),
        ([1.0, 2.0], TypeError, r"class_weight.*Got \[1.0, 2.0\]"),
        ({"star": 2.0}, ValueError, r"the keys \['star'\], which are no labels of y; its classes"),
        ({"quasar": 0}, ValueError, r"class_weight\['quasar'\] must be > 0, got 0"),
        ({"quasar": float("nan")}, ValueError, r"class_weight\['quasar'\] must be > 0"),
        ({"quasar": "3"}, TypeError, r"class_weight\['quasar'\] must be a number > 0, got '3'"),
    ],
)
def test_wrong_weights(rare, given, error, words):
    with pytest.raises(error, match=words):
        TorchClassifier(MLP((2,)), QUICK, class_weight=given).fit(*rare)


def test_a_checkpoint_of_other_weights_is_refused(rare, tmp_path):
    model = TorchClassifier(MLP((2,)), QUICK, class_weight="balanced")
    model.fit(*rare, checkpoint=tmp_path / "run")
    other = copy.deepcopy(model).set_params(class_weight={"quasar": 2.0})
    with pytest.raises(ValueError, match="of another run: the loss was"):
        other.fit(*rare, checkpoint=tmp_path / "run")
