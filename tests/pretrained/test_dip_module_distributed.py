"""Two processes that each read a part of the data against one that reads it all."""

import itertools

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing, nn

from dipedl.explanation import FindingWarning
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


KEYS = list(itertools.product(["full", "tied", "diagonal", "low-rank"], [0.0, 1e6], [False, True]))


def density_of(form, offset, one_sided):
    """An unfitted density, and the rows of two processes; the first lacks a class, or has none."""
    density = ClassGaussians(form, dtype=torch.float64)
    (X, y), (Z, z) = blobs(90, 3), blobs(120, 4)
    some = torch.zeros_like(y, dtype=torch.bool) if one_sided else y > 0
    return density, [(X[some] + offset, y[some]), (Z + offset, z)]


def of_parts(form, offset, one_sided, rank):
    """Scores of new rows and the count, in two steps."""
    density, rows = density_of(form, offset, one_sided)
    X, y = rows[rank]
    density.update(X[:20], y[:20], 3)
    density.finish(distributed.group.WORLD)
    if rank:
        # The other has nothing new to tell.
        density.update(X[20:], y[20:], 3)
    return density.finish(distributed.group.WORLD)(NEW + offset), density.n_


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
    densities = {key: of_parts(*key, rank) for key in KEYS}
    for form, p in (("none", 0), ("different", 4 + rank)):
        density = ClassGaussians()
        if p:
            density.update(torch.zeros(1, p), torch.tensor([0]), 3)
        try:
            density.finish(distributed.group.WORLD)
        except ValueError as error:
            densities[form] = str(error)
    state = {name: model.state_dict() for name, model in found.items()}
    answers = {name: model(NEW) for name, model in found.items()}
    answers = {name: tuple(part) for name, part in answers.items()}
    torch.save((state, answers, densities, said), f"{folder}/{rank}.pt")
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
    for state, answers, *_ in ranks:
        for found, wanted in zip(answers["calibration"], one(NEW), strict=True):
            torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
        assert float(state["calibration"]["head.offset"]) == pytest.approx(one.offset_, abs=1e-10)
        assert int(state["calibration"]["density_.counts"].sum()) == 400


def test_held_out_rows_are_those_of_both(ranks):
    counts = ranks[0][0]["held out"]["density_.counts"]
    golden = (np.sqrt(5) - 1) / 2
    held = sum(int((np.arange(1, n + 1) * golden % 1 < 0.1).sum()) for n in (150, 250))
    assert int(counts.sum()) == 400 - held
    model = module()
    model.source.look((NEW[:2],), {})
    model.load_state_dict(ranks[0][0]["held out"])
    with pytest.warns(FindingWarning, match="too narrow"):
        model.predict_dirichlet(NEW).credible_interval()


def test_without_a_group_each_is_on_its_own(ranks):
    sizes = [int(state["alone"]["density_.counts"].sum()) for state, *_ in ranks]
    assert sizes == [150, 250]


def test_where_one_fails_none_waits(ranks):
    assert "failed in another process: rank 1: ValueError: loader gave no rows" in ranks[0][3]
    assert ranks[1][3].startswith("ValueError: loader gave no rows")


@pytest.mark.parametrize("key", KEYS)
def test_densities_of_two_processes_are_those_of_one(ranks, key):
    density, ((A, a), (B, b)) = density_of(*key)
    density.update(torch.cat([A[:20], B]), torch.cat([a[:20], b]), 3)
    density.finish()
    for *_, densities, _ in ranks:
        score, n = densities[key]
        assert n == density.n_
        torch.testing.assert_close(score, density(NEW + key[1]), rtol=1e-10, atol=0)


def test_processes_of_no_rows_or_of_other_features_are_refused(ranks):
    for *_, densities, _ in ranks:
        assert densities["none"].endswith("got (classes, features) [None, None]")
        assert densities["different"].endswith("[(3, 4), (3, 5)]")


def test_a_group_needs_processes():
    with pytest.raises(ValueError, match="init_process_group"):
        module().fit_density([TRAIN], group="world")
