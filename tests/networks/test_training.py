import io
import math

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

from dipedl.networks import TextProgress, Training, train  # noqa: E402
from dipedl.networks.training import (  # noqa: E402
    Feed,
    learning_rate,
)


def mean_square(outputs, targets, epoch):
    return (outputs - targets).square().mean()


def line(n=40, seed=0):
    """Inputs and targets of a noisy linear map, and a linear module at a fixed start."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(n, 3, generator=generator)
    y = x @ torch.tensor([[1.0], [-2.0], [0.5]]) + 0.1 * torch.randn(n, 1, generator=generator)
    module = nn.Linear(3, 1)
    nn.init.constant_(module.weight, 0.1)
    nn.init.zeros_(module.bias)
    return module, (x, y)


def fast(**changes):
    return Training(**{"epochs": 3, "batch_size": 16, "n_jobs": 1, "device": "cpu", **changes})


def values(module):
    return {name: value.clone() for name, value in module.state_dict().items()}


def same(a, b):
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("adam", lambda p: torch.optim.Adam(p, 0.05, weight_decay=0.01)),
        ("adamw", lambda p: torch.optim.AdamW(p, 0.05, weight_decay=0.01)),
        (
            "sgd",
            lambda p: torch.optim.SGD(p, 0.05, momentum=0.8, nesterov=True, weight_decay=0.01),
        ),
    ],
)
def test_equals_a_plain_loop(name, make):
    module, (x, y) = line()
    settings = fast(
        optimizer=name, learning_rate=0.05, weight_decay=0.01, momentum=0.8, clip_norm=0.5
    )
    history = train(module, mean_square, (x, y), settings, seed=7)

    plain, _ = line()
    optimizer = make(plain.parameters())
    stream = int(np.random.SeedSequence(7).generate_state(3)[1])
    shuffler = torch.Generator().manual_seed(stream)
    losses = []
    for _ in range(3):
        total = 0.0
        for rows in torch.randperm(40, generator=shuffler).split(16):
            optimizer.zero_grad()
            loss = (plain(x[rows]) - y[rows]).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(plain.parameters(), 0.5)
            optimizer.step()
            total += loss.item() * len(rows)
        losses.append(total / 40)
    torch.testing.assert_close(module.weight, plain.weight, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(history.loss, losses, rtol=1e-5)
    assert history.epochs == len(history.seconds) == 3 and history.score == [None] * 3


def rates(settings, per_epoch):
    return [learning_rate(settings, i, per_epoch) for i in range(settings.epochs * per_epoch)]


@pytest.mark.parametrize("per_epoch", [1, 7])
@pytest.mark.parametrize(
    ("name", "scheduler", "each_step"),
    [
        ("one-cycle", lambda o, n: torch.optim.lr_scheduler.OneCycleLR(o, 0.1, n), True),
        ("cosine", lambda o, n: torch.optim.lr_scheduler.CosineAnnealingLR(o, 12), False),
        ("step", lambda o, n: torch.optim.lr_scheduler.StepLR(o, 5, 0.3), False),
        ("exponential", lambda o, n: torch.optim.lr_scheduler.ExponentialLR(o, 0.3), False),
    ],
)
def test_schedules_agree_with_those_of_pytorch(name, scheduler, each_step, per_epoch):
    settings = Training(epochs=12, learning_rate=0.1, schedule=name, step_size=5, decay=0.3)
    optimizer = torch.optim.SGD([nn.Parameter(torch.zeros(1))], 0.1)
    theirs = scheduler(optimizer, 12 * per_epoch)
    expected = []
    for step in range(12 * per_epoch):
        expected.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        if each_step or (step + 1) % per_epoch == 0:
            theirs.step()
    np.testing.assert_allclose(rates(settings, per_epoch), expected, rtol=1e-9, atol=1e-15)


def test_the_rate_that_was_used_is_in_the_history():
    module, data = line()
    settings = fast(schedule="one-cycle", learning_rate=0.1, optimizer="sgd")
    history = train(module, mean_square, data, settings, seed=0)
    np.testing.assert_allclose(history.learning_rate, rates(settings, 3)[2::3])
    assert rates(Training(epochs=1, schedule="one-cycle"), 1)[0] > 0


def test_every_row_once_an_epoch_and_no_lone_row():
    generator = torch.Generator().manual_seed(0)
    for n, size, lengths in [(9, 4, [4, 5]), (8, 4, [4, 4]), (1, 4, [1]), (3, 1, [1, 1, 1])]:
        feed = Feed((torch.zeros(n, 1),), torch.device("cpu"))
        parts = feed.batches(size, generator)
        assert [len(rows) for rows in parts] == lengths
        assert sorted(torch.cat(parts).tolist()) == list(range(n))


def dropout_net():
    generator = torch.Generator().manual_seed(3)
    module = nn.Sequential(nn.Linear(3, 8), nn.BatchNorm1d(8), nn.Dropout(0.5), nn.Linear(8, 1))
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5, generator=generator)
    return module


def noise(inputs, generator):
    return inputs + 0.1 * torch.randn(inputs.shape, generator=generator)


def test_everything_random_comes_from_the_seed_and_nothing_global_changes():
    _, data = line()
    states, threads = torch.get_rng_state(), torch.get_num_threads()
    found = []
    for seed, global_seed in [(0, 1), (0, 2), (5, 1)]:
        torch.manual_seed(global_seed)
        module = dropout_net()
        before = torch.get_rng_state()
        train(module, mean_square, data, fast(augment=noise), seed=seed)
        assert torch.equal(torch.get_rng_state(), before)
        found.append(values(module))
    torch.set_rng_state(states)
    assert torch.get_num_threads() == threads
    assert same(found[0], found[1]) and not same(found[0], found[2])


def test_augmentation_and_dropout_act_while_training_only():
    seen = []

    def record(inputs, generator):
        seen.append(len(inputs))
        return inputs

    _, data = line()
    module = dropout_net()
    train(module, mean_square, data, fast(augment=record), seed=0, validation=data)
    assert seen == [16, 16, 8] * 3 and not module.training


def test_loss_gets_the_epoch_and_score_does_not():
    module, data = line()
    epochs, scored = [], []

    def loss(outputs, targets, epoch):
        epochs.append(epoch)
        return mean_square(outputs, targets, epoch)

    def score(outputs, targets):
        scored.append(len(outputs))
        return (outputs - targets).abs().mean()

    history = train(module, loss, data, fast(batch_size=8), seed=0, validation=data, score=score)
    assert epochs == [0] * 5 + [1] * 5 + [2] * 5
    assert scored == [32, 8] * 3
    expected = (module(data[0]) - data[1]).abs().mean().item()
    assert history.score[-1] == pytest.approx(expected, rel=1e-5)


def test_restores_the_best_weights_and_stops_early():
    module, data = line()
    scores = iter([5.0, 3.0, 4.0, 3.0, 9.0])
    weights = []

    def report(_):
        weights.append(values(module))

    history = train(
        module,
        mean_square,
        data,
        fast(epochs=9, patience=2, restore_best=True),
        seed=0,
        validation=data,
        score=lambda outputs, targets: next(scores) if len(outputs) else 0,
        progress=report,
    )
    assert history.score == [5.0, 3.0, 4.0, 3.0] and history.stopped_early
    assert history.best_epoch == 1 and same(values(module), weights[1])


def test_without_restore_best_the_last_weights_stay():
    module, data = line()
    reports = []
    settings = fast(epochs=5, validate_every=2)
    history = train(
        module, mean_square, data, settings, seed=0, validation=data, progress=reports.append
    )
    # the last epoch is always checked
    assert [score is None for score in history.score] == [True, False, True, False, False]
    assert history.score[-1] == pytest.approx(mean_square(module(data[0]), data[1], 0).item())
    assert not history.stopped_early and history.best_epoch == 4
    assert [report["epoch"] for report in reports] == [1, 2, 3, 4, 5]
    assert reports[-1]["seconds_left"] == 0 < reports[0]["seconds_left"]


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_loss_that_is_not_finite_stops_with_the_last_good_weights(bad):
    module, data = line()
    good, calls = {}, []

    def loss(outputs, targets, epoch):
        calls.append(epoch)
        return mean_square(outputs, targets, epoch) * (bad if len(calls) == 8 else 1.0)

    with pytest.raises(FloatingPointError, match=r"loss is (nan|inf) in epoch 3, step 2 of 3.*Low"):
        train(
            module,
            loss,
            data,
            fast(),
            seed=0,
            progress=lambda report: good.update(values(module)),
        )
    assert same(values(module), good) and not module.training


def test_weights_and_scores_that_are_not_finite_stop_it_too():
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, gradient):
            return gradient * math.nan

    module, data = line()
    start = values(module)
    with pytest.raises(FloatingPointError, match="a weight is nan in epoch 1, after its last step"):
        train(
            module,
            lambda outputs, targets, epoch: mean_square(Root.apply(outputs), targets, epoch),
            data,
            fast(batch_size=40),
            seed=0,
        )
    assert same(values(module), start)
    with pytest.raises(FloatingPointError, match="the validation score is nan in epoch 1"):
        train(
            module,
            mean_square,
            data,
            fast(),
            seed=0,
            validation=data,
            score=lambda outputs, targets: math.nan,
        )


def test_half_precision_never_reaches_the_loss():
    class Half(nn.Linear):
        def forward(self, x):
            return super().forward(x).bfloat16()

    seen = set()

    def loss(outputs, targets, epoch):
        seen.add(outputs.dtype)
        return mean_square(outputs, targets, epoch)

    _, data = line()
    train(Half(3, 1), loss, data, fast(epochs=1), seed=0)
    double = tuple(part.double() for part in data)
    train(nn.Linear(3, 1).double(), loss, double, fast(epochs=1), seed=0)
    assert seen == {torch.float32, torch.float64}


@pytest.mark.parametrize(
    ("error", "size", "message"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), 64, "batch of 64 rows; try .*batch_size=32"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), 1, "smaller network"),
    ],
)
def test_out_of_memory_names_the_batch_size_to_try(error, size, message):
    module, data = line()
    start = values(module)

    def loss(outputs, targets, epoch):
        raise error

    with pytest.raises(MemoryError, match=message):
        train(module, loss, data, fast(batch_size=size), seed=0)
    assert same(values(module), start)


@pytest.mark.skipif(torch.cuda.is_available(), reason="has a GPU")
def test_a_gpu_that_is_not_there():
    module, data = line()
    with pytest.raises(
        ValueError, match=r"device='cuda:1' was asked for.*sees no CUDA device.*use"
    ):
        train(module, mean_square, data, fast(device="cuda:1"), seed=0)
    assert fast(device=torch.device("cuda:1")) == fast(device="cuda:1")
    # "auto" is then the CPU, with bfloat16 as well
    assert train(module, mean_square, data, fast(device="auto", amp=True), seed=0).epochs == 3


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"epochs": 0}, ValueError, "epochs must be an integer >= 1, got 0"),
        ({"batch_size": 2.5}, TypeError, "batch_size must be an integer"),
        ({"n_jobs": 0}, ValueError, "n_jobs must be an integer >= 1, got 0"),
        ({"patience": True}, TypeError, "patience must be an integer"),
        ({"optimizer": "lion"}, ValueError, r"optimizer must be one of \['adam', .*got 'lion'"),
        ({"optimizer": torch.optim.SGD}, TypeError, r"optimizer must be .*the class SGD: give"),
        ({"schedule": "plateau"}, ValueError, "schedule must be one of .*'one-cycle'"),
        ({"learning_rate": -1}, ValueError, "learning_rate must be > 0, got -1"),
        ({"learning_rate": math.inf}, ValueError, "learning_rate"),
        ({"learning_rate": "fast"}, TypeError, "learning_rate must be a number > 0, got 'fast'"),
        ({"weight_decay": -0.1}, ValueError, "weight_decay must be >= 0"),
        ({"momentum": 1.0}, ValueError, r"momentum must be in \[0, 1\), got 1.0"),
        ({"decay": 0}, ValueError, "decay must be in"),
        ({"clip_norm": 0}, ValueError, "clip_norm must be > 0, or None, got 0"),
        ({"compile": "no"}, TypeError, "compile must be True, False or .graph., got .no."),
        ({"compile": 1}, TypeError, "compile must be True, False or .graph., got 1"),
        ({"compile": "graph", "optimizer": print}, ValueError, "optimizer that is given by its na"),
        ({"amp": 1}, TypeError, "amp must be True or False, got 1"),
        ({"augment": 3}, TypeError, "augment must be None or a callable"),
        ({"device": "tpu"}, ValueError, "device must be 'auto', 'cpu'.*got 'tpu'"),
        ({"device": torch.device("meta")}, ValueError, "device must be 'auto', 'cpu'.*meta"),
    ],
)
def test_settings_are_checked(changes, error, message):
    with pytest.raises(error, match=message):
        Training(**changes)


def test_an_optimizer_of_a_function():
    def make(module, settings):
        return torch.optim.RMSprop(module.parameters(), settings.learning_rate)

    found = []
    for optimizer in (make, lambda module, settings: torch.optim.RMSprop(module.parameters(), 0.1)):
        module, data = line()
        train(module, mean_square, data, fast(optimizer=optimizer, learning_rate=0.1), seed=0)
        found.append(values(module))
    assert same(*found)
    module, data = line()
    with pytest.raises(TypeError, match=r"optimizer must return .*got NoneType"):
        train(module, mean_square, data, fast(optimizer=lambda module, settings: None), seed=0)


def test_text_progress_tells_what_is_left():
    module, data = line()
    stream = io.StringIO()
    show = TextProgress("line", stream)
    train(module, mean_square, data, fast(), seed=0, validation=data, progress=show)
    (text,) = stream.getvalue().splitlines()  # a log has the last epoch of a short training
    assert text.startswith("line epoch 3/3  loss ") and text.endswith("0 s left")
    report = {"epoch": 4, "epochs": 50, "loss": 1.0, "score": 0.5, "rows_per_second": 10.0}
    report |= {"seconds_left": 3725.0, "member": 2, "members": 5}
    stream.isatty = lambda: True
    show = TextProgress(stream=stream)
    show({**report, "stopped_early": False})
    show({**report, "stopped_early": True})
    assert "\rmember 2/5  epoch  4/50" in stream.getvalue() and "1 h 2 min" in stream.getvalue()
    assert stream.getvalue().endswith("stopped early\n")


def test_arguments_are_checked():
    module, (x, y) = line()
    with pytest.raises(TypeError, match="data must be a tuple of tensors"):
        train(module, mean_square, (x, y.numpy()), fast(), seed=0)
    with pytest.raises(ValueError, match=r"validation must hold tensors .* got rows \[40, 39\]"):
        train(module, mean_square, (x, y), fast(), seed=0, validation=(x, y[1:]))
    with pytest.raises(ValueError, match="module must have weights to train, and Flatten has none"):
        train(nn.Flatten(), mean_square, (x, y), fast(), seed=0)
    with pytest.raises(ValueError, match=r"data must hold .* at least 1"):
        train(module, mean_square, (x[:0], y[:0]), fast(), seed=0)
    for settings in (fast(patience=1), fast(restore_best=True)):
        with pytest.raises(ValueError, match="patience and restore_best need validation data"):
            train(module, mean_square, (x, y), settings, seed=0)
    for seed, error in [(None, TypeError), (-1, ValueError)]:
        with pytest.raises(error, match=f"seed must be an integer >= 0, got {seed}"):
            train(module, mean_square, (x, y), fast(), seed=seed)
    with pytest.raises(TypeError, match=r"loss must return a scalar tensor.*got \(16, 1\)"):
        train(module, lambda o, t, epoch: (o - t).square(), (x, y), fast(), seed=0)
