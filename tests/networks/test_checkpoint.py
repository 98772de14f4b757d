import os
import signal
import subprocess
import sys
from dataclasses import replace

import pytest

from weekly import sample_of

torch = pytest.importorskip("torch")

resource = pytest.importorskip("resource")

from torch import nn  # noqa: E402

from dipedl.networks import Training, train  # noqa: E402
from dipedl.networks.training import OPTIMIZERS  # noqa: E402

SETTINGS = Training(
    epochs=4,
    batch_size=8,
    optimizer="adam",
    learning_rate=0.02,
    schedule="one-cycle",
    clip_norm=1.0,
    patience=3,
    restore_best=True,
    augment=None,
    device="cpu",
    n_jobs=1,
)

KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import test_checkpoint as t

def die_in_the_third_epoch(inputs, generator, seen=[]):
    seen.append(1)
    if len(seen) == 12:  # in the middle of an epoch of five steps
        os.kill(os.getpid(), signal.SIGKILL)
    return noise_(inputs, generator)

noise_ = t.noise.act
t.Noise.act = staticmethod(die_in_the_third_epoch)
t.run({path!r})
"""


class Noise:
    """An augmentation whose repr says all there is to it."""

    def __repr__(self):
        return "Noise()"

    @staticmethod
    def act(inputs, generator):
        return inputs + 0.1 * torch.randn(inputs.shape, generator=generator)

    def __call__(self, inputs, generator):
        return type(self).act(inputs, generator)


noise = Noise()


def net(width=8, activation=nn.ReLU):
    """With batch normalisation, dropout and buffers: all that a state can hold."""
    module = nn.Sequential(
        nn.Linear(3, width),
        nn.BatchNorm1d(width),
        activation(),
        nn.Dropout(0.5),
        nn.Linear(width, 1),
    )
    generator = torch.Generator().manual_seed(1)
    for parameter in module.parameters():
        nn.init.uniform_(parameter, -0.5, 0.5, generator=generator)
    return module


def mean_square(outputs, targets, epoch):
    return (1 + epoch) * (outputs - targets).square().mean()


def absolute(outputs, targets):
    return (outputs - targets).abs().mean()


def rows(seed, n=40):
    x = torch.randn(n, 3, generator=torch.Generator().manual_seed(seed))
    return x, x.sum(dim=1, keepdim=True)


def run(path, module=None, settings=SETTINGS, loss=mean_square, **arguments):
    module = net() if module is None else module
    settings = replace(settings, augment=noise)
    defaults = {"data": rows(0), "seed": 3, "validation": rows(1), "score": absolute}
    arguments = {**defaults, **arguments}
    data = arguments.pop("data")
    history = train(module, loss, data, settings, checkpoint=path, **arguments)
    return module, history


def assert_same_run(one, other):
    (module, history), (module_2, history_2) = one, other
    for name, value in module.state_dict().items():
        assert torch.equal(value, module_2.state_dict()[name]), name
    assert replace(history, seconds=[]) == replace(history_2, seconds=[])


class Stop(Exception):
    pass


def stop_after(epochs):
    def progress(report):
        if report["epoch"] == epochs:
            raise Stop

    return progress


def adagrad(module, settings):
    return torch.optim.Adagrad(module.parameters(), settings.learning_rate)


@pytest.mark.parametrize("optimizer", sample_of([*OPTIMIZERS, adagrad], 0, 2))
@pytest.mark.parametrize("epochs", [1, 3])
def test_an_interrupted_run_ends_with_the_bits_of_an_uninterrupted_one(tmp_path, optimizer, epochs):
    settings = replace(SETTINGS, optimizer=optimizer)
    path = tmp_path / "run.pt"
    with pytest.raises(Stop):
        run(path, settings=settings, progress=stop_after(epochs))
    reports = []
    resumed = run(path, settings=settings, progress=reports.append)
    assert [report["epoch"] for report in reports] == list(range(epochs + 1, 5))
    assert_same_run(resumed, run(None, settings=settings))


@pytest.mark.slow
def test_a_killed_process_loses_no_more_than_its_epoch(tmp_path):
    path = str(tmp_path / "run.pt")
    folder = os.path.dirname(__file__)
    code = KILLED.format(tests=folder, path=path)
    env = os.environ | {"PYTHONPATH": os.path.dirname(folder)}
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert out.returncode == -signal.SIGKILL, out.stderr
    reports = []
    resumed = run(path, progress=reports.append)
    assert [report["epoch"] for report in reports] == [3, 4]
    assert_same_run(resumed, run(None))


def test_a_finished_run_is_read_and_not_repeated(tmp_path):
    path = tmp_path / "run.pt"
    first = run(path)
    written = path.read_bytes()
    reports = []
    assert_same_run(run(path, progress=reports.append), first)
    assert reports == [] and path.read_bytes() == written
    assert os.listdir(tmp_path) == ["run.pt"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"module": net(9)}, r"weights of 0.weight was \(8, 3\) there and is \(9, 3\) here"),
        ({"module": net(8, nn.Tanh)}, r"the layers was \(2\): ReLU\(\) there and is \(2\): Tanh"),
        ({"module": nn.Linear(3, 1)}, r"weights of weight was absent there and is \(1, 3\) here"),
        ({"settings": replace(SETTINGS, epochs=9)}, r"settings\.epochs was 4 there and is 9 here"),
        ({"seed": 4}, "seed was 3 there and is 4 here"),
        ({"data": rows(2)}, r"data was \(40, 3\) torch.float32 .* there and is .* here"),
        ({"validation": rows(0)}, "validation was"),
        ({"score": None}, "the score was <function absolute> there and is None here"),
        ({"loss": lambda o, t, epoch: mean_square(o, t, 0)}, "the loss was <function mean_square>"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(tmp_path, changes, message):
    path = tmp_path / "run.pt"
    run(path)
    written = path.read_bytes()
    with pytest.raises(ValueError, match=rf"run\.pt is of another run: {message}") as error:
        run(path, **changes)
    assert "pass another checkpoint path, or delete the file" in str(error.value)
    assert path.read_bytes() == written


@pytest.mark.parametrize("content", [b"", b"nonsense", "cut", "pickle"])
def test_a_damaged_checkpoint_is_an_error(tmp_path, content):
    path = tmp_path / "run.pt"
    run(path)
    if content == "cut":
        content = path.read_bytes()[:-1000]
    if content == "pickle":
        torch.save({"format": os.system}, path)  # code, which is not run
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"run\.pt cannot be read .*; delete it to start again"):
        run(path)


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "run.pt"
    torch.save({"format": 99, "fingerprint": {}, "state": {}}, path)
    with pytest.raises(ValueError, match="has format 99, this version reads 1"):
        run(path)


def test_a_missing_folder_is_an_error_before_the_first_epoch(tmp_path):
    reports = []
    with pytest.raises(FileNotFoundError, match=r"the folder .* does not exist; create it"):
        run(tmp_path / "nowhere" / "run.pt", progress=reports.append)
    assert reports == []


def test_no_space_left(tmp_path):
    """A limit on the size of files stands for a full disk: the write itself fails."""
    path = tmp_path / "run.pt"
    with pytest.raises(Stop):
        run(path, progress=stop_after(1))
    written, module = path.read_bytes(), net()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
    try:
        with pytest.raises(OSError, match=r"run\.pt: .* needs [\d.]+ MB: free some space"):
            run(path, module)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert path.read_bytes() == written and os.listdir(tmp_path) == ["run.pt"]
    # the module holds the second epoch, which could not be written
    with pytest.raises(Stop):
        run(tmp_path / "other.pt", other := net(), progress=stop_after(2))
    for name, value in module.state_dict().items():
        assert torch.equal(value, other.state_dict()[name])
    # and with space again the run goes on
    assert_same_run(run(path), run(None))
