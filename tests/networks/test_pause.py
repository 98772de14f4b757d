"""A training that stops in time, and goes on as if it had not."""

import itertools
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.base import clone

torch = pytest.importorskip("torch")

from test_checkpoint import SETTINGS, assert_same_run, mean_square, rows, run  # noqa: E402

from dipedl.baselines import DAEDL, SNGP, SWAG, DeepEnsemble, MCDropout  # noqa: E402
from dipedl.networks import (  # noqa: E402
    MLP,
    TorchClassifier,
    Training,
    TrainingPaused,
    training,
)


class Clock:
    """Time that passes by a second for every training step: five of them make an epoch."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def loss(self, outputs, targets, epoch):
        if torch.is_grad_enabled():
            self.now += 1
        return mean_square(outputs, targets, epoch)

    def __repr__(self):
        return "Clock()"


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=clock, perf_counter=clock))
    return clock


def paused(path, clock, seconds, **arguments):
    with pytest.raises(TrainingPaused) as error:
        run(path, deadline=clock.now + seconds, loss=clock.loss, **arguments)
    return error.value


@pytest.mark.parametrize("seconds", [3, 6, 9, 11, 14.5, 17])
def test_a_paused_run_ends_with_the_bits_of_one_that_never_paused(tmp_path, clock, seconds):
    path, epochs = tmp_path / "run.pt", []
    for _ in range(9):
        try:
            resumed = run(path, deadline=clock.now + seconds, loss=clock.loss)
            break
        except TrainingPaused as pause:
            epochs.append(pause.epoch)
            if seconds < 5:
                seconds += 1
    assert_same_run(resumed, run(None, loss=clock.loss))
    # never less than before, and a pause costs nothing that was done
    assert epochs == sorted(epochs) and epochs[-1] < 4


@pytest.mark.parametrize(("seconds", "done"), [(1, 1), (6, 1), (9.9, 1), (10, 2), (14, 2), (16, 3)])
def test_an_epoch_that_would_end_late_is_not_begun(tmp_path, clock, seconds, done):
    start, module = clock.now, None
    pause = paused(tmp_path / "run.pt", clock, seconds)
    # the length of the first is not known before it was done
    assert pause.epoch == done and clock.now == start + 5 * done and pause.epochs == 4
    assert pause.seconds_left == pytest.approx(seconds - 5 * done)
    assert module is None and (tmp_path / "run.pt").exists()


def test_after_a_pause_the_earlier_epochs_say_how_long_one_takes(tmp_path, clock):
    path = tmp_path / "run.pt"
    paused(path, clock, 6)
    written, start = path.read_bytes(), clock.now
    for seconds in (0, 4.9):
        pause = paused(path, clock, seconds)
        assert pause.epoch == 1 and clock.now == start and path.read_bytes() == written
    assert paused(path, clock, 5.1).epoch == 2


def test_a_finished_run_needs_no_time(tmp_path, clock):
    path = tmp_path / "run.pt"
    first = run(path, loss=clock.loss)
    assert_same_run(run(path, loss=clock.loss, deadline=clock.now - 1), first)


def test_a_large_checkpoint_is_written_now_and_then_and_before_every_end(
    tmp_path, clock, monkeypatch
):
    times, write = [], training.Checkpoints._write

    def recorded(*arguments):
        times.append(clock.now - start)
        return write(*arguments)

    monkeypatch.setattr(training.Checkpoints, "_write", recorded)
    settings = replace(SETTINGS, epochs=8, patience=None)
    start = clock.now
    whole = run(tmp_path / "small.pt", loss=clock.loss, settings=settings)
    assert times == [5, 10, 15, 20, 25, 30, 35, 40]
    monkeypatch.setattr(training, "_LARGE", 1000)
    times.clear()
    start = clock.now
    run(tmp_path / "large.pt", loss=clock.loss, settings=settings)
    assert times == [5, 35, 40]

    def slow(*arguments):
        clock.now += 4
        return recorded(*arguments)

    # a tenth of the time at the most: after 4 s of writing 40 s pass before the next
    monkeypatch.setattr(training.Checkpoints, "_write", slow)
    times.clear()
    start = clock.now
    longer = replace(settings, epochs=12)
    run(tmp_path / "slow.pt", loss=clock.loss, settings=longer)
    assert times == [9, 53, 72]
    monkeypatch.setattr(training.Checkpoints, "_write", recorded)
    times.clear()
    start, path = clock.now, tmp_path / "paused.pt"
    assert paused(path, clock, 11, settings=settings).epoch == 2 and times == [5, 10]
    assert_same_run(run(path, loss=clock.loss, settings=settings), whole)
    # a finished run is not written again
    times.clear()
    run(path, loss=clock.loss, settings=settings)
    assert times == []


def labelled(n=40):
    X = rows(0, n)[0].numpy()
    return X, (X.sum(axis=1) > 0).astype(int)


TRAINING = Training(epochs=3, batch_size=8, device="cpu", n_jobs=1)
ESTIMATORS = [
    TorchClassifier(MLP((4,)), TRAINING),
    MCDropout(MLP((4,), dropout=0.5), TRAINING, n_samples=3),
    DAEDL(MLP((4,)), TRAINING),
    DeepEnsemble(TorchClassifier(MLP((4,)), TRAINING, random_state=0), 2),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_estimators_pause_and_go_on(tmp_path, monkeypatch, estimator):
    X, y = labelled()
    expected = estimator.fit(X, y).predict_proba(X)
    ticks = itertools.count()  # a second passes whenever somebody looks at the clock
    tick = lambda: next(ticks)  # noqa: E731
    monkeypatch.setattr(training, "time", SimpleNamespace(monotonic=tick, perf_counter=tick))
    done = []
    for _ in range(20):
        try:
            estimator.fit(X, y, checkpoint=tmp_path / "run.pt", deadline=tick() + 6)
            break
        except TrainingPaused as pause:
            done.append(pause.epoch)
    assert {1, 2} & set(done)
    np.testing.assert_array_equal(estimator.predict_proba(X), expected)


@pytest.mark.parametrize(
    "estimator",
    [
        *ESTIMATORS[:3],
        SNGP(MLP((4,)), TRAINING, n_fourier=8),
        SWAG(MLP((4,)), TRAINING, iterates=replace(TRAINING, epochs=2), n_samples=2),
    ],
    ids=lambda e: type(e).__name__,
)
def test_a_paused_fit_leaves_nothing_of_an_earlier_one(tmp_path, estimator):
    """SWAG went on to predict by the networks of the fit before, for other classes."""
    X, y = labelled()
    arguments = {"checkpoint": tmp_path / "run.pt", "deadline": 0.0}
    first, again = clone(estimator), clone(estimator).fit(X, y)
    for model in (first, again):
        with pytest.raises(TrainingPaused):
            model.fit(X, np.array(["a", "b"])[y], **arguments)
    assert vars(again).keys() == vars(first).keys()


def test_bad_deadlines(tmp_path):
    path = tmp_path / "run.pt"
    with pytest.raises(ValueError, match=r"deadline needs a checkpoint, got .*=None: .*path"):
        run(None, deadline=5.0)
    with pytest.raises(TypeError, match=r"deadline must be a number of seconds of time\.mono"):
        run(path, deadline="soon")
    with pytest.raises(ValueError, match=r"deadline must be .* got nan"):
        run(path, deadline=float("nan"))


def test_a_pause_survives_the_way_between_processes():
    pause = pickle.loads(pickle.dumps(TrainingPaused(3, 10, 4.2)))
    assert (pause.epoch, pause.epochs, pause.seconds_left) == (3, 10, 4.2)
    assert "epoch 3 of 10 with 4.2 s left; the same call" in str(pause)
