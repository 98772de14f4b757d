"""How a GPU is kept busy, as far as a CPU can tell; the last tests run where there is a GPU."""

import math
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from test_checkpoint import SETTINGS, Stop, assert_same_run, net, rows, run, stop_after  # noqa: E402

from dipedl.networks import MLP, TorchClassifier, Training, train, training  # noqa: E402
from dipedl.networks.step_graph import StepGraph  # noqa: E402
from dipedl.networks.training import Feed  # noqa: E402

CPU = torch.device("cpu")
READS = ("item", "tolist", "__bool__", "__float__", "__int__")


@contextmanager
def counted_reads(monkeypatch):
    """Every way in which Python learns the value of a tensor."""
    found = []
    with monkeypatch.context() as patch:
        for name in READS:
            read = getattr(torch.Tensor, name)
            patch.setattr(
                torch.Tensor, name, lambda t, name=name, read=read: found.append(name) or read(t)
            )
        yield found


def test_no_step_reads_a_number(monkeypatch):
    def reads(n):
        settings = Training(epochs=2, batch_size=4, clip_norm=1.0, device="cpu", n_jobs=1)
        with counted_reads(monkeypatch) as found:
            train(
                net(),
                lambda outputs, targets, epoch: (outputs - targets).square().mean(),
                rows(0, n),
                settings,
                seed=0,
            )
        return found

    few, many = reads(16), reads(160)
    assert few == many and 0 < len(few) <= 8


@pytest.mark.parametrize("bad", [math.nan, -math.inf])
@pytest.mark.parametrize("place", [7, 8, 9])
def test_a_loss_that_is_not_finite_is_found_at_the_end_of_its_epoch(bad, place):
    module, good, calls = net(), {}, []

    def loss(outputs, targets, epoch):
        calls.append(epoch)
        factor = bad if len(calls) == place else 1.0
        return (outputs - targets).square().mean() * factor

    def keep(report):
        good.update({name: value.clone() for name, value in module.state_dict().items()})

    settings = Training(epochs=4, batch_size=16, device="cpu", n_jobs=1)
    message = rf"loss is {bad} in epoch 3, step {place - 6} of 3; the module holds"
    with pytest.raises(FloatingPointError, match=message):
        train(module, loss, rows(0), settings, seed=0, progress=keep)
    assert calls.count(2) == 3 and 3 not in calls
    assert all(torch.equal(good[name], value) for name, value in module.state_dict().items())


def test_batches_that_stay_are_those_that_move():
    data = (torch.rand(33, 3), torch.arange(33))
    feed, resident = Feed(data, CPU), Feed(data, CPU)
    assert not feed.is_resident
    resident.is_resident = True
    seen = []
    for one in (feed, resident):
        batches = one.batches(8, torch.Generator().manual_seed(0))
        assert [len(batch) for batch in batches] == [8, 8, 8, 9]
        seen.append([one.take(batch) for batch in batches])
    for (x, y), (x_2, y_2) in zip(*seen, strict=True):
        assert torch.equal(x, x_2) and torch.equal(y, y_2)
        assert torch.equal(x, data[0][y])


@pytest.fixture
def quick_compiler(monkeypatch):
    """All of the compiler but its code generation, which takes minutes."""
    torch._dynamo.reset()
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="aot_eager"))
    yield
    torch._dynamo.reset()


@pytest.mark.slow
def test_compiled_training_is_that_of_the_plain_module(tmp_path, quick_compiler):
    """With buffers that the forward pass assigns, as a power iteration does: they come out."""

    class Count(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("passes", torch.zeros(()))

        def forward(self, x):
            if self.training:
                self.passes = self.passes + 1
            return x

    def start():
        return torch.nn.Sequential(Count(), net())

    settings = replace(SETTINGS, compile=True, epochs=2)
    plain = run(None, start(), replace(settings, compile=False))
    compiled = run(None, start(), settings)
    first, before = compiled[0].state_dict(), start().state_dict()
    assert list(first) == list(before) and type(compiled[0]) is type(plain[0])
    assert first["0.passes"] > 0
    for name, value in first.items():
        torch.testing.assert_close(value, plain[0].state_dict()[name], rtol=1e-4, atol=1e-5)
    # an interrupted run: its checkpoint has plain names, and it ends with the same bits
    path = tmp_path / "run.pt"
    with pytest.raises(Stop):
        run(path, start(), settings, progress=stop_after(1))
    assert list(torch.load(path, weights_only=True)["state"]["module"]) == list(before)
    assert_same_run(run(path, start(), settings), compiled)


def test_flags_of_numpy_compile_and_graphs_change_nothing_on_a_cpu(tmp_path, monkeypatch):
    modules = []
    monkeypatch.setattr(torch, "compile", lambda m, dynamic: modules.append((m, dynamic)) or m)
    plain = run(None)
    assert_same_run(run(None, settings=replace(SETTINGS, compile=np.False_)), plain)
    assert_same_run(run(None, settings=replace(SETTINGS, compile="graph")), plain)
    assert modules == []
    compiled = run(None, settings=replace(SETTINGS, compile=np.True_))
    assert modules == [(compiled[0], False)]
    path = tmp_path / "run.pt"
    with pytest.raises(Stop):
        run(path, settings=replace(SETTINGS, compile="graph"), progress=stop_after(2))
    assert_same_run(run(path), plain)


class Recorder:
    """CUDA graphs as far as a CPU has them: a recorded step is taken by `replay` alone."""

    def __init__(self, monkeypatch):
        self.events, self.is_recording = [], False
        stream = SimpleNamespace(wait_stream=lambda other: None)
        for name in ("Stream", "current_stream"):
            monkeypatch.setattr(torch.cuda, name, lambda device: stream)
        monkeypatch.setattr(torch.cuda, "stream", lambda stream: nullcontext())
        monkeypatch.setattr(torch.cuda, "CUDAGraph", SimpleNamespace)
        monkeypatch.setattr(torch.cuda, "graph", self.record)
        self.module = torch.nn.BatchNorm1d(2)
        self.optimizer = torch.optim.Adam(self.module.parameters(), 1.0)

    @contextmanager
    def record(self, graph, stream):
        self.is_recording = True
        yield
        self.is_recording = False
        graph.replay = partial(self.take, "replay", *self.recorded)

    def take(self, event, batch, epoch, loss):
        self.events.append(event)
        rate = self.optimizer.param_groups[0]["lr"]
        loss.copy_(rate * batch[0].sum() * (1 + epoch))

    def step(self, batch, epoch):
        loss = torch.full((), math.nan)
        if self.is_recording:
            self.recorded = batch, epoch, loss
            self.events.append(f"record {epoch}")
        else:
            self.take("step", batch, epoch, loss)
        return loss

    def graph(self, step):
        return StepGraph(step, self.module, self.optimizer, CPU)


def test_a_step_is_recorded_in_each_epoch_and_replayed_on_full_batches(monkeypatch):
    recorder = Recorder(monkeypatch)
    graph, batches = recorder.graph(recorder.step), torch.rand(34, 2).split(8)
    losses, expected = [], []
    for epoch in range(2):
        for i, batch in enumerate(batches):
            rate = 0.5 + i + 10 * epoch
            losses.append(graph([batch], rate, epoch))
            expected.append(rate * batch.sum() * (1 + epoch))
    torch.testing.assert_close(losses, expected)
    assert recorder.optimizer.param_groups[0]["capturable"]
    assert recorder.events == [
        *["step"] * 3,
        *["record 0", "replay", "step"],
        *["record 1", *["replay"] * 4, "step"],
    ]


def test_steps_that_cannot_be_recorded(monkeypatch):
    """Power iterations that assigned their vectors stood still while steps were replayed."""
    recorder, batch = Recorder(monkeypatch), [torch.rand(8, 2)]

    def assign(batch, epoch):
        recorder.module.running_mean = recorder.module.running_mean + 1
        return recorder.step(batch, epoch)

    def read(batch, epoch):
        if recorder.is_recording:
            raise RuntimeError("operation not permitted when stream is capturing")
        return recorder.step(batch, epoch)

    for step, error, message in [
        (assign, ValueError, r"buffers in place, and running_mean was assigned: call its copy_"),
        (read, RuntimeError, r"cannot record a step of this module and loss.*compile=False"),
    ]:
        graph = recorder.graph(step)
        for _ in range(3):
            graph(batch, 0.1, 0)
        with pytest.raises(error, match=message):
            graph(batch, 0.1, 0)


needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


@needs_gpu
@pytest.mark.parametrize("resident", [True, False])
def test_a_gpu_trains_as_a_cpu_does(monkeypatch, resident):
    monkeypatch.setattr(training, "_fits", lambda data, device: resident)
    settings = replace(SETTINGS, patience=None, restore_best=False)
    plain = torch.nn.Linear(3, 1), torch.nn.Linear(3, 1)
    plain[1].load_state_dict(plain[0].state_dict())
    loss = lambda o, t, epoch: (o - t).square().mean()  # noqa: E731
    histories = [
        train(module, loss, rows(0), replace(settings, device=device), seed=0)
        for module, device in zip(plain, ("cpu", "cuda"), strict=True)
    ]
    assert histories[0].loss == pytest.approx(histories[1].loss, rel=1e-4)
    torch.testing.assert_close(plain[0].weight, plain[1].weight, rtol=1e-4, atol=1e-6)


@needs_gpu
@pytest.mark.parametrize("optimizer", ["adam", "adamw", "sgd"])
def test_replayed_steps_train_as_single_ones_do(tmp_path, optimizer):
    """With a loss and a rate that change between epochs, and a last batch of another size."""
    settings = Training(
        epochs=6,
        batch_size=8,
        optimizer=optimizer,
        learning_rate=1e-2,
        weight_decay=1e-3,
        schedule="one-cycle",
        clip_norm=0.5,
        device="cuda",
    )
    loss = lambda o, t, epoch: (o - t).square().mean() * (1 + epoch)  # noqa: E731
    start, data = net().state_dict(), rows(0, 53)

    def trained(compiled, **options):
        module = net()
        module.load_state_dict(start)
        run_settings = replace(settings, compile=compiled)
        return module, train(module, loss, data, run_settings, seed=0, **options)

    (plain, history), (replayed, again) = trained(False), trained("graph")
    assert again.loss == pytest.approx(history.loss, rel=1e-4)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(replayed.state_dict()[name], value, rtol=1e-3, atol=1e-5)
    path = tmp_path / "run.pt"
    with pytest.raises(Stop):
        trained("graph", checkpoint=path, progress=stop_after(3))
    for compiled in (False, "graph"):
        copy = tmp_path / f"{compiled}.pt"
        copy.write_bytes(path.read_bytes())
        resumed = trained(compiled, checkpoint=copy)[1]
        assert resumed.loss == pytest.approx(history.loss, rel=1e-4)


@needs_gpu
def test_replayed_steps_have_the_weights_of_the_classes():
    """A recorded copy from the CPU read memory that was free by the time of a replay."""
    X = rows(0, 64)[0].numpy()
    y = (X.sum(axis=1) > 0.5).astype(int)
    settings = Training(epochs=3, batch_size=8, device="cuda")
    plain, replayed = (
        TorchClassifier(MLP((4,)), replace(settings, compile=compiled), class_weight="balanced")
        for compiled in (False, "graph")
    )
    expected = plain.fit(X, y).history_.loss
    assert replayed.fit(X, y).history_.loss == pytest.approx(expected, rel=1e-4)


@needs_gpu
def test_no_step_waits_for_the_gpu(monkeypatch):
    step, module = _loop_step(), net().cuda()
    monkeypatch.setattr("dipedl.networks.training.Run._step", step)
    settings = Training(epochs=2, batch_size=8, device="cuda", clip_norm=1.0)
    loss = lambda o, t, epoch: (o - t).square().mean()  # noqa: E731
    assert train(module, loss, rows(0), settings, seed=0).epochs == 2


def _loop_step():
    """A step in which waiting is an error, once the first one has set the optimiser up."""
    from dipedl.networks.training import Run

    plain, steps = Run._step, []

    def step(self, *arguments):
        torch.cuda.set_sync_debug_mode("error" if steps else "default")
        steps.append(1)
        try:
            return plain(self, *arguments)
        finally:
            torch.cuda.set_sync_debug_mode("default")

    return step
