import pickle
import warnings
from dataclasses import replace
from operator import methodcaller

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import clone
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

torch = pytest.importorskip("torch")

from dipedl import DIPClassifier  # noqa: E402
from dipedl.baselines import CEDL, DAEDL, EDL, SNGP, SWAG, DeepEnsemble, NNGuide  # noqa: E402
from dipedl.density import GDADensity  # noqa: E402
from dipedl.networks import (  # noqa: E402
    MLP,
    FastCNN,
    LayerFeatures,
    TorchClassifier,
    Training,
)
from normed_network import Normed  # noqa: E402

QUICK = Training(epochs=4, batch_size=8, learning_rate=5e-3, device="cpu", n_jobs=1)


def toy(rng, n=60):
    """8 x 8 images: class "b" has a bright left half."""
    y = np.array(["a", "b"])[np.arange(n) % 2]
    X = rng.uniform(0, 0.6, (n, 8, 8))
    X[y == "b", :, :4] += 0.4
    return X.reshape(n, 64), y


def shift(inputs, generator):
    """Shift all images of a batch by up to two pixels each way."""
    steps = torch.randint(-2, 3, (2,), generator=generator).tolist()
    return inputs.reshape(-1, 8, 8).roll(steps, (1, 2)).reshape(inputs.shape)


def quick(backbone=None, training=QUICK, **options):
    return TorchClassifier(backbone or FastCNN(4), training, **options)


@pytest.fixture(scope="module")
def fitted():
    X, y = toy(np.random.default_rng(20261121))
    return quick(precision="float64").fit(X, y), X, y


@parametrize_with_checks(
    [TorchClassifier(MLP((16,)), Training(epochs=4, batch_size=16, learning_rate=0.05, n_jobs=1))]
)
def test_sklearn_contract(estimator, check):
    check(estimator)


def test_learns_and_answers_in_the_order_of_its_classes(fitted):
    clf, X, y = fitted
    P = clf.predict_proba(X)
    assert P.dtype == np.float64 and P.shape == (60, 2)
    np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-12)
    assert list(clf.classes_) == ["a", "b"]
    assert clf.score(X, y) > 0.95
    np.testing.assert_array_equal(clf.predict(X), clf.classes_[P.argmax(axis=1)])
    np.testing.assert_allclose(P, softmax(clf.logits(X), axis=1), rtol=1e-12)
    assert clf.history_.epochs == 4 and clf.image_shape_ == (1, 8, 8)


def test_features_are_those_before_the_head(fitted):
    clf, X, _ = fitted
    F = clf.transform(X)
    assert F.shape == (60, 16) and F.dtype == np.float64
    head = clf.module_.head[-1]
    logits = F @ head.weight.detach().numpy().T + head.bias.detach().numpy()
    np.testing.assert_allclose(clf.logits(X), logits, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize(("precision", "rtol"), [("float64", 1e-11), ("float32", 1e-4)])
def test_an_answer_does_not_depend_on_the_other_rows(rng, precision, rtol):
    X, y = toy(rng)
    clf = quick(FastCNN(4), precision=precision).fit(X, y)
    one_by_one = np.concatenate([clf.predict_proba(x[None]) for x in X])
    np.testing.assert_allclose(clf.predict_proba(X), one_by_one, rtol=rtol)
    many = np.tile(X, (20, 1))  # more than one chunk
    np.testing.assert_allclose(clf.transform(many)[-60:], clf.transform(X), rtol=rtol, atol=1e-6)


def test_resumes_from_its_checkpoint(rng, tmp_path):
    X, y = toy(rng)
    whole = quick().fit(X, y)
    path = tmp_path / "clf.pt"

    def stop(report):
        if report["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        quick().fit(X, y, checkpoint=path, progress=stop)
    epochs = []
    resumed = quick(training=replace(QUICK, n_jobs=2)).set_params(training=QUICK)
    resumed.fit(X, y, checkpoint=path, progress=lambda report: epochs.append(report["epoch"]))
    assert epochs == [3, 4]
    np.testing.assert_array_equal(resumed.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(ValueError, match=r"of another run: weights of body\.0\.weight"):
        quick(FastCNN(5)).fit(X, y, checkpoint=path)
    # threads are free to differ, also where the description of the model names them
    quick(training=replace(QUICK, n_jobs=2, device="auto")).fit(X, y, checkpoint=path)


@pytest.mark.parametrize("backbone", [FastCNN(4), Normed(4)])
def test_what_was_learned_before_an_interruption_is_there(rng, backbone):
    X, y = toy(rng)
    training = replace(QUICK, epochs=3)
    before = quick(backbone, training, precision="float64")

    def stop(report):
        if report["epoch"] == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        before.fit(X, y, progress=stop)
    whole = quick(backbone, replace(training, epochs=2), precision="float64").fit(X, y)
    np.testing.assert_array_equal(before.predict_proba(X), whole.predict_proba(X))


def test_a_failed_fit_changes_nothing(rng):
    X, y = toy(rng)
    network = quick().fit(X, y)
    before, expected = dict(vars(network)), network.predict_proba(X)
    with pytest.raises(TypeError, match="validation must be a pair"):
        network.fit(X, np.where(y == "a", "c", y), validation="none")
    assert vars(network) == before
    np.testing.assert_array_equal(network.predict_proba(X), expected)


def test_what_was_learned_before_the_loss_was_nan_is_there(rng):
    X, y = toy(rng)

    class Breaks(TorchClassifier):
        def _loss(self, outputs, target, *, epoch):
            return super()._loss(outputs, target, epoch=epoch) * (np.nan if epoch == 2 else 1)

    clf = Breaks(FastCNN(4), QUICK)
    with pytest.raises(FloatingPointError, match="in epoch 3, step 1 of 8; the module holds"):
        clf.fit(X, y)
    whole = quick(training=replace(QUICK, epochs=2)).fit(X, y)
    np.testing.assert_array_equal(clf.predict_proba(X), whole.predict_proba(X))


@pytest.mark.parametrize("precision", ["float32", "float64"])
def test_answers_that_are_not_finite_are_refused(rng, precision):
    X = rng.normal(size=(40, 2))
    training = replace(QUICK, epochs=1)
    clf = TorchClassifier(MLP((8,)), training, precision=precision)
    clf.fit(X, np.arange(40) % 2)
    with torch.no_grad():
        clf.module_.head[-1].weight *= 100
    top = np.finfo(precision).max * 0.9
    with pytest.raises(ValueError, match=r"NaN or infinity for 1 of 40 rows .* row 7 with values"):
        clf.predict_proba(np.where(np.arange(40)[:, None] == 7, [top, -top], X))
    if precision == "float32":
        with (
            warnings.catch_warnings(action="ignore", category=RuntimeWarning),  # of the cast
            pytest.raises(ValueError, match="too large for dtype"),
        ):
            clf.predict_proba(np.full((1, 2), 1e300))


def test_inputs_that_are_no_images(rng):
    X = rng.normal(size=(200, 2)) * 30
    y = np.where(X[:, 0] * X[:, 1] > 0, 3, 7)
    training = Training(epochs=40, batch_size=16, learning_rate=0.01, n_jobs=1)
    clf = TorchClassifier(training=training).fit(X, y)
    assert clf.image_shape_ == (1, 1, 2) and clf.score(X, y) > 0.9
    assert set(clf.predict(X)) == {3, 7}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_shape": (28, 28)}, r"X must have 1 \* 28 \* 28 = 784 columns.*got 64; pass the"),
        ({"image_shape": (8, 0)}, "image_shape must be .height, width. or .*got .8, 0."),
        ({"image_shape": 8}, "image_shape must be .height, width. or .*got 8"),
        ({"image_shape": (8.0, 8.0)}, "image_shape must be .height, width. or"),
        ({"image_shape": (2, 2, 4, 4)}, "image_shape must be"),
        ({"image_shape": (2, 32)}, "FastCNN needs images of at least 4 x 4 pixels.*use MLP"),
        ({"precision": "float16"}, r"precision must be one of \['float32', 'float64'\]"),
        ({"label_smoothing": 1.0}, r"label_smoothing must be in \[0, 1\), got"),
        ({"label_smoothing": np.nan}, r"label_smoothing must be in \[0, 1\), got"),
    ],
)
def test_refuses_settings(rng, options, message):
    X, y = toy(rng)
    with pytest.raises(ValueError, match=message):
        quick(**options).fit(X, y)


def test_refuses_what_it_cannot_do(rng, fitted):
    clf, X, y = fitted
    with pytest.raises(ValueError, match=r"X must hold pixels in \[0, 1\], got .* by 255"):
        quick().fit(255 * X, y)
    with pytest.raises(ValueError, match=r"X must hold pixels in \[0, 1\], got values from -0\.1"):
        clf.predict(X - X.min() - 0.1)
    with pytest.raises(ValueError, match="y must hold at least 2 classes, got one class: 0"):
        quick().fit(X, np.zeros(60))
    with pytest.raises(NotFittedError):
        quick().predict_proba(X)
    with pytest.raises(ValueError, match="64"):
        clf.predict_proba(X[:, :5])
    with pytest.raises(ValueError, match="NaN"):
        quick().fit(np.where(X > 0.5, np.nan, X), y)
    with pytest.raises(TypeError, match=r"backbone must be None or an Architecture.*got 'LeNet5'"):
        quick("LeNet5").fit(X, y)
    with pytest.raises(TypeError, match="training must be None or a Training, got 5"):
        quick(training=5).fit(X, y)


def test_refuses_odd_validation(rng):
    X, y = toy(rng)
    bad = {
        "y of validation holds the labels .'c'.*the classes are .'a', 'b'": (X[:2], ["a", "c"]),
        "X of validation must be as X: X has 5 features.* expecting 64": (X[:, :5], y),
        r"X of validation must hold pixels in \[0, 1\]": (2 * X, y),
        "inconsistent numbers of samples": (X, y[1:]),
    }
    for message, validation in bad.items():
        with pytest.raises(ValueError, match=message):
            quick().fit(X, y, validation)
    with pytest.raises(TypeError, match=r"validation must be a pair .X, y. or None"):
        quick().fit(X, y, X)


def noise_like(X, rng):
    return rng.permuted(X, axis=1)


def test_gives_a_dip_classifier_its_features_and_probabilities(rng):
    X, y = toy(rng, 200)
    frozen = FrozenEstimator(quick(training=replace(QUICK, epochs=8)).fit(X, y))
    clf = DIPClassifier(frozen, GDADensity(), features=frozen).fit(X, y)
    known, _ = toy(rng, 100)
    unknown = noise_like(known[1::2], rng)
    u = np.concatenate([clf.uncertainty(known), clf.uncertainty(unknown)])
    assert roc_auc_score([0] * 100 + [1] * 50, u) > 0.9
    np.testing.assert_allclose(
        clf.score_samples(X), clf.density_.score_samples(frozen.transform(X)), rtol=1e-9
    )


def test_same_seed_same_network_and_no_global_state_touched(rng):
    X, y = toy(rng)
    threads, state = torch.get_num_threads(), torch.get_rng_state()
    augmented = replace(QUICK, augment=shift)
    first = quick(training=augmented).fit(X, y).predict_proba(X)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == threads
    torch.manual_seed(1)
    again = quick(training=augmented).fit(X, y)
    torch.set_rng_state(state)
    np.testing.assert_array_equal(again.predict_proba(X), first)
    other = quick(training=augmented, random_state=1).fit(X, y).predict_proba(X)
    assert not np.array_equal(other, first)


@pytest.mark.parametrize("backbone", [FastCNN(4), Normed(4)])
def test_clones_and_pickles(rng, backbone):
    X, y = toy(rng)
    clf = quick(backbone, replace(QUICK, epochs=1)).fit(X, y)
    assert clone(clf).get_params() == clf.get_params()
    again = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_validation_chooses_the_epoch(rng):
    X, y = toy(rng)
    X_new, y_new = toy(rng, 30)
    training = replace(QUICK, restore_best=True, epochs=6)
    clf = quick(training=training).fit(X, y, (X_new, y_new))
    column = {"a": 0, "b": 1}
    P = clf.predict_proba(X_new)[np.arange(30), [column[label] for label in y_new]]
    assert -np.log(P).mean() == pytest.approx(min(clf.history_.score), rel=1e-4)
    assert len(clf.history_.score) == 6


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize(
    "estimator",
    [
        TorchClassifier(MLP((4,)), QUICK),
        SNGP(MLP((4,)), QUICK, n_fourier=8),
        DAEDL(MLP((4,)), QUICK),
        CEDL(EDL(MLP((4,)), QUICK)),
        LayerFeatures(TorchClassifier(MLP((4,)), QUICK), ["body"]),
    ],
    ids=lambda e: type(e).__name__,
)
def test_tables_are_taken_as_arrays_are_and_without_a_warning(rng, estimator, library):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    frame = pytest.importorskip(library).DataFrame(dict(zip("abc", X.T, strict=True)))
    answer = "predict_proba" if hasattr(estimator, "predict_proba") else "transform"
    expected = getattr(clone(estimator).fit(X, y), answer)(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = getattr(estimator.fit(frame, y), answer)(frame)
    np.testing.assert_array_equal(found, expected)
    if isinstance(estimator, TorchClassifier):
        with pytest.raises(ValueError, match=r"X of validation must be as X: .*feature names"):
            estimator.fit(frame, y, validation=(frame[["c", "b", "a"]], y))


def test_views_of_truth_values_are_those_of_numbers(rng):
    X, y = rng.normal(size=(40, 3)) > 0, np.arange(40) % 2
    by_numbers, by_truth = (CEDL(EDL(MLP((4,)), QUICK)).fit(Z, y) for Z in (1.0 * X, X))
    np.testing.assert_array_equal(by_truth.predict_proba(X), by_numbers.predict_proba(1.0 * X))


@pytest.mark.parametrize("cls", [TorchClassifier, DAEDL])
def test_labels_are_those_of_the_other_classifiers(rng, cls):
    """Nullable whole numbers came back as floats, and a column was refused after the training."""
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    expected = cls(MLP((4,)), QUICK).fit(X, y).predict(X)
    nullable = pytest.importorskip("pandas").Series(y, dtype="Int64")
    found = cls(MLP((4,)), QUICK).fit(X, nullable).predict(X)
    assert found.dtype.kind == "i"
    np.testing.assert_array_equal(found, expected)
    with pytest.warns(UserWarning, match="column-vector"):
        found = cls(MLP((4,)), QUICK).fit(X, y[:, None]).predict(X)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match=r"y must hold a label for each row.*first at row 0"):
        cls(MLP((4,)), QUICK).fit(X, np.where(y == 0, None, "b"))


@pytest.mark.parametrize(
    "make",
    [
        lambda seed: TorchClassifier(MLP((4,)), QUICK, random_state=seed),
        lambda seed: DeepEnsemble(ExtraTreesClassifier(2, max_depth=1), 2, random_state=seed),
        lambda seed: NNGuide(n_neighbors=2, random_state=seed),
        lambda seed: CEDL(EDL(MLP((4,)), QUICK), random_state=seed),
    ],
    ids=["TorchClassifier", "DeepEnsemble", "NNGuide", "CEDL"],
)
def test_a_generator_is_a_seed_here_too(rng, make):
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    drawn = int(np.random.default_rng(3).integers(2**31))
    ask = methodcaller("uncertainty" if hasattr(make(0), "uncertainty") else "predict_proba", X)
    answers = [ask(make(seed).fit(X, y)) for seed in (np.random.default_rng(3), drawn)]
    np.testing.assert_array_equal(*answers)
    with pytest.raises(TypeError, match="random_state must be None, an int, a RandomState or"):
        make("3").fit(X, y)


def test_a_fit_leaves_the_generators_of_gpus_alone(rng, monkeypatch):
    """SWAG seeded the global generator of every GPU with zero."""
    seeds = []
    monkeypatch.setattr(torch.cuda, "manual_seed_all", seeds.append)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    SWAG(MLP((4,)), QUICK, iterates=replace(QUICK, epochs=2), n_samples=2).fit(X, y)
    assert seeds == []


def test_predictions_are_in_eval_mode_whatever_mode_the_network_is_in(rng):
    """A callback that predicts after an epoch got an answer at random."""
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    clf, answers = TorchClassifier(MLP((8,), dropout=0.5), QUICK), []
    clf.fit(X, y, progress=lambda report: answers.append([clf.logits(X), clf.logits(X)]))
    assert len(answers) == QUICK.epochs
    for pair in answers:
        np.testing.assert_array_equal(*pair)
    expected = clf.logits(X)
    clf.module_.train()
    np.testing.assert_array_equal(clf.logits(X), expected)
