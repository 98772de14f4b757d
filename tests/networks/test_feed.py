"""How a GPU is kept busy, as far as a CPU can tell; the last tests run where there is a GPU."""

import math
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from test_checkpoint import SETTINGS, Stop, assert_same_run, net, rows, run, stop_after  # noqa: E402

from dipedl.networks import Training, train, training  # noqa: E402
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
        told = replace(settings, compile=compiled)
        return module, train(module, loss, data, told, seed=0, **options)

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
