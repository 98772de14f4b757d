"""What EDL, R-EDL, Re-EDL, DAEDL and PostNet have in common, on real digits of 8 x 8 pixels."""

import pickle
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

torch = pytest.importorskip("torch")

from dipedl import Dirichlet  # noqa: E402
from dipedl.baselines import DAEDL, EDL, REDL, PostNet, ReEDL  # noqa: E402
from dipedl.datasets import load_digits  # noqa: E402
from dipedl.metrics import ood_auroc  # noqa: E402
from dipedl.networks import MLP, LeNet5, Training  # noqa: E402
from dipedl.protocols import EvidentialClassifier  # noqa: E402

TRAINING = Training(epochs=12, batch_size=64, learning_rate=1e-2, schedule="one-cycle", n_jobs=1)
METHODS = [EDL, REDL, ReEDL, DAEDL, PostNet]
ids = pytest.mark.parametrize("method", METHODS, ids=lambda m: m.__name__)


def new(method, **changes):
    # R-EDL's KL to a prior of 0.1 is stiff: in epochs of 16 steps it would come before the classes.
    weaker = {"kl_weight": 0.1} if method is REDL else {}
    return method(MLP((64, 32)), replace(TRAINING, **changes), **weaker)


@pytest.fixture(scope="module")
def data():
    return load_digits()


@pytest.fixture(scope="module")
def fitted(data):
    return {m: new(m).fit(data.X_train, data.y_train) for m in METHODS}


@ids
def test_learns(method, fitted, data):
    # A nearest class mean reaches 0.89 here.
    model = fitted[method]
    assert model.score(data.X_test, data.y_test) > 0.95
    assert model.history_.epochs == 12


@ids
def test_answers_are_those_of_one_dirichlet(method, fitted, data):
    model, X = fitted[method], data.X_test
    assert isinstance(model, EvidentialClassifier)
    d = model.predict_dirichlet(X)
    assert isinstance(d, Dirichlet) and d.concentration.shape == (len(X), 8)
    assert d.concentration.dtype == np.float64
    np.testing.assert_array_equal(model.predict_proba(X), d.mean)
    rows, best = np.arange(len(X)), np.searchsorted(model.classes_, model.predict(X))
    np.testing.assert_allclose(d.mean[rows, best], d.mean.max(axis=1), rtol=1e-12)
    for kind in ("vacuity", "total", "epistemic"):
        np.testing.assert_array_equal(model.uncertainty(X, kind), getattr(d, kind))
    assert (d.vacuity > 0).all() and (d.vacuity <= 1).all()


@ids
def test_uncertainty_ranks_like_the_vacuity(method, fitted, data):
    model = fitted[method]
    X = np.concatenate([data.X_test, data.ood["held_out"]])
    u, strength = model.uncertainty(X), model.predict_dirichlet(X).strength
    assert u.shape == (len(X),) and not np.isnan(u).any()
    assert (np.diff(strength[np.argsort(u)]) <= 1e-9 * strength.max()).all()


@ids
def test_mistakes_and_unknown_classes_are_less_certain(method, fitted, data):
    model = fitted[method]
    known = model.uncertainty(data.X_test)
    assert ood_auroc(known, model.uncertainty(data.ood["held_out"])) > 0.7
    wrong = model.predict(data.X_test) != data.y_test
    total = model.uncertainty(data.X_test, "total")
    assert ood_auroc(total[~wrong], total[wrong]) > 0.8


@ids
def test_an_answer_does_not_depend_on_the_other_rows(method, fitted, data):
    model, X = fitted[method], data.X_test[:9]
    many = np.concatenate([X, data.X_train])  # more than one chunk
    alone = np.concatenate([model.predict_proba(x[None]) for x in X])
    np.testing.assert_allclose(model.predict_proba(many)[:9], alone, rtol=1e-4, atol=1e-7)


@ids
def test_the_network_in_float32_gives_the_answers_of_float64(method, fitted, data, monkeypatch):
    X = np.concatenate([data.X_test, data.ood["held_out"]])
    single, labels = fitted[method].uncertainty(X), fitted[method].predict(X)
    double = deepcopy(fitted[method])
    double.module_.double()
    monkeypatch.setattr(method, "predict_dtype", lambda self: torch.float64)
    np.testing.assert_allclose(single, double.uncertainty(X), rtol=1e-3, atol=1e-4)
    np.testing.assert_array_equal(labels, double.predict(X))


@ids
def test_labels_and_probabilities_agree(method, fitted, data):
    model = fitted[method]
    for X in (data.X_train, data.X_test, data.ood["held_out"]):
        best = model.classes_[model.predict_proba(X).argmax(axis=1)]
        np.testing.assert_array_equal(model.predict(X), best)


@ids
def test_same_seed_same_model_and_nothing_global_is_touched(method, data):
    X, y = data.X_train[:200], data.y_train[:200]
    threads, state = torch.get_num_threads(), torch.random.get_rng_state()
    models = [new(method, epochs=2).set_params(random_state=s).fit(X, y) for s in (3, 3, 4)]
    answers = [m.predict_proba(X) for m in models]
    np.testing.assert_array_equal(answers[0], answers[1])
    assert np.abs(answers[0] - answers[2]).max() > 1e-3
    assert torch.get_num_threads() == threads
    assert torch.equal(torch.random.get_rng_state(), state)


@ids
def test_parameters_clone_and_pickle(method, fitted, data):
    model = fitted[method]
    copy = clone(model)
    assert copy.get_params() == model.get_params() and not hasattr(copy, "module_")
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.uncertainty(data.X_test), model.uncertainty(data.X_test))
    with pytest.raises(NotFittedError):
        copy.predict_dirichlet(data.X_test)


@ids
def test_labels_may_be_words(method, data):
    X, y = data.X_train[:200], data.y_train[:200]
    words = np.array([f"digit {c}" for c in y])
    by_number, by_word = (new(method, epochs=2).fit(X, labels) for labels in (y, words))
    np.testing.assert_array_equal(by_word.predict(X), [f"digit {c}" for c in by_number.predict(X)])


@ids
def test_validation_data_chooses_the_epoch(method, data):
    X, y = data.X_train, data.y_train
    model = new(method, epochs=4, restore_best=True)
    model.fit(X[:300], y[:300], validation=(X[300:500], y[300:500]))
    scores = np.array(model.history_.score, dtype=float)
    assert model.history_.best_epoch == scores.argmin()
    with pytest.raises(ValueError, match="need validation data"):
        new(method, restore_best=True).fit(X[:50], y[:50])


@ids
def test_wrong_kind_of_uncertainty(method, fitted, data):
    with pytest.raises(ValueError, match=r"kind must be one of \['log_evidence', 'vacuity'.*'mi'"):
        fitted[method].uncertainty(data.X_test, "mi")


@pytest.mark.parametrize(
    ("method", "parameters", "message"),
    [
        (EDL, {"loss": "ce"}, "loss must be one of .*'digamma', 'log', 'mse'.*'ce'"),
        (EDL, {"evidence": "tanh"}, "evidence must be one of .*'tanh'"),
        (EDL, {"kl_weight": -1}, "kl_weight must be >= 0, got -1"),
        (EDL, {"annealing_epochs": -1}, "annealing_epochs must be an integer >= 0"),
        (REDL, {"annealing_epochs": 1.5}, "or a share of the epochs in"),
        (EDL, {"kl_weight": np.nan}, "kl_weight must be >= 0, got nan"),
        (REDL, {"lambda2": 0.0}, r"lambda2 must be > 0, got 0\.0"),
        (REDL, {"lambda1": -0.1}, "lambda1 must be >= 0"),
        (REDL, {"evidence": None}, "evidence must be one of"),
        (ReEDL, {"lambda2": -1}, "lambda2 must be > 0"),
        (DAEDL, {"kl_weight": -1}, "kl_weight must be >= 0"),
        (PostNet, {"latent_dim": 0}, "latent_dim must be an integer >= 1"),
        (PostNet, {"n_layers": 0}, "n_layers must be an integer >= 1"),
        (PostNet, {"entropy_weight": -1}, "entropy_weight must be >= 0"),
        (PostNet, {"budget": "one"}, "budget must be one of .*'counts', 'total'.*'one'"),
        (PostNet, {"budget": 0}, "budget must be > 0, or one of"),
    ],
)
def test_bad_parameters(method, parameters, message, data):
    with pytest.raises(ValueError, match=message):
        new(method, epochs=1).set_params(**parameters).fit(data.X_train, data.y_train)


@ids
def test_bad_inputs(method, fitted, data):
    X, y = data.X_train[:40], data.y_train[:40]
    with pytest.raises(ValueError, match="NaN"):
        new(method).fit(np.where(X > 0.9, np.nan, X), y)
    with pytest.raises(ValueError, match="at least 2 classes"):
        new(method).fit(X, np.zeros(40, dtype=int))
    with pytest.raises(ValueError, match=r"pixels in \[0, 1\]"):
        method(LeNet5(), TRAINING, image_shape=(16, 16)).fit(np.full((40, 256), 7.0), y)
    with pytest.raises(ValueError, match="64 columns for image_shape"):
        new(method).set_params(image_shape=(8, 8)).fit(X[:, :32], y)
    with pytest.raises(ValueError, match=r"(?i)features"):
        fitted[method].predict_proba(X[:, :5])
    with pytest.raises(
        ValueError, match=r"gives NaN or infinity for 1 of 40 rows.* row 3 .*3e\+38"
    ):
        fitted[method].uncertainty(np.where(np.arange(40)[:, None] == 3, 3e38, X))
    with pytest.raises(TypeError, match="training must be None or a Training, got 5"):
        new(method).set_params(training=5).fit(X, y)


@ids
def test_the_published_configuration_is_there(method):
    published = method.as_published(random_state=7)
    assert published.random_state == 7 and published.training.epochs >= 50
    assert repr(clone(published)) == repr(published)
    network = published.backbone.build((1, 28, 28), 10, torch.Generator().manual_seed(0))
    assert network(torch.zeros(2, 784)).shape == (2, 10)
