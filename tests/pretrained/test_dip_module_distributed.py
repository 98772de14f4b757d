"""Two processes that each read a part of the data against one that reads it all."""

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing, nn

from dipedl.pretrained import ClassGaussians, DIPModule

pytestmark = pytest.mark.slow  # two processes that import PyTorch


def blobs(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return torch.tensor(rng.normal(size=(n, 4)) + 2 * np.eye(4)[y]), torch.tensor(y)


def module():
    torch.manual_seed(3)
    network = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).eval().double()
    return DIPModule(network, density=ClassGaussians(dtype=torch.float64))


def parts(data, cut):
    X, y = data
    return [(X[:cut], y[:cut])], [(X[cut:], y[cut:])]


#: Rows to learn from, held-out rows, and new ones.
TRAIN, HELD, NEW = blobs(400, 0), blobs(120, 1), blobs(40, 2)[0]


def worker(rank, folder):
    torch.set_num_threads(1)
    distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=2
    )
    train, held = parts(TRAIN, 150)[rank], parts(HELD, 70)[rank]
    found = {
        "calibration": module().fit_density(train, calibration=held, group="world"),
        "held out": module().fit_density(train, group=distributed.group.WORLD),
        "alone": module().fit_density(train, calibration=held),
    }
    said = ""
    try:
        module().fit_density(train if rank == 0 else [], group="world")
    except (ValueError, RuntimeError) as error:
        said = f"{type(error).__name__}: {error}"
    state = {name: model.state_dict() for name, model in found.items()}
    answers = {name: model(NEW) for name, model in found.items()}
    torch.save((state, {k: tuple(v) for k, v in answers.items()}, said), f"{folder}/{rank}.pt")
    distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ranks")
    multiprocessing.spawn(worker, (str(folder),), nprocs=2)
    return [torch.load(folder / f"{rank}.pt") for rank in range(2)]


@pytest.mark.parametrize("name", ["calibration", "held out"])
def test_both_end_with_the_same_module(ranks, name):
    (first, *_), (second, *_) = ranks
    assert first[name].keys() == second[name].keys()
    for key, value in first[name].items():
        assert torch.equal(value, second[name][key]), key


def test_equal_to_one_process_over_all_rows(ranks):
    one = module().fit_density([TRAIN], calibration=[HELD])
    for state, answers, _ in ranks:
        for found, wanted in zip(answers["calibration"], one(NEW), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
        assert float(state["calibration"]["head.offset"]) == pytest.approx(one.offset_, abs=1e-10)
        assert int(state["calibration"]["density_.counts"].sum()) == 400


def test_held_out_rows_are_those_of_both(ranks):
    counts = ranks[0][0]["held out"]["density_.counts"]
    golden = (np.sqrt(5) - 1) / 2
    held = sum(int((np.arange(1, n + 1) * golden % 1 < 0.1).sum()) for n in (150, 250))
    assert int(counts.sum()) == 400 - held


def test_without_a_group_each_is_on_its_own(ranks):
    sizes = [int(state["alone"]["density_.counts"].sum()) for state, *_ in ranks]
    assert sizes == [150, 250]


def test_where_one_fails_none_waits(ranks):
    assert "failed in another process: rank 1: ValueError: loader gave no rows" in ranks[0][2]
    assert ranks[1][2].startswith("ValueError: loader gave no rows")


def test_a_group_needs_processes():
    with pytest.raises(ValueError, match="init_process_group"):
        module().fit_density([TRAIN], group="world")
