"""What fit_density takes from loaders, which rows it holds out, and what it refuses."""

import numpy as np
import pytest
import torch
from torch import nn

from dipedl.evidence import Identity
from dipedl.maths.arrays import on_simplex
from dipedl.maths.scores import round_down
from dipedl.pretrained import ClassGaussians, DIPModule
from dipedl.pretrained.features import Rows
from dipedl.pretrained.held_out_rows import HoldOut
from weekly import sample_of


def blobs(n, seed=0, k=3):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % k
    return torch.tensor(rng.normal(size=(n, 4)) + 2 * np.eye(4)[y]).float(), torch.tensor(y)


def mlp():
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)).eval()


def batched(X, y, size=50):
    return [(X[i : i + size], y[i : i + size]) for i in range(0, len(X), size)]


class TwoInputs(nn.Module):
    """Takes its inputs by position, by name or nested, as Hugging Face models do."""

    def __init__(self):
        super().__init__()
        self.body = mlp()

    def forward(self, ids=None, extra=None, *, nested=None):
        ids, extra = (ids, extra) if nested is None else (nested["a"], nested["b"][0])
        return {"logits": self.body(ids + extra)}


LABEL_NAMES = ("labels", "label", "y", "target", "targets")
X, Y = blobs(300)
Z = torch.zeros(300, 4)
FORMS = {
    "tuple of inputs": [((X, Z), Y)],
    "list": [[[X, Z], Y]],
    "dict of inputs": [({"ids": X, "extra": Z}, Y)],
    "nested": [({"nested": {"a": X, "b": (Z,)}}, Y)],
    "labels as a list": [((X, Z), Y.tolist())],
    "labels of uint8": [((X, Z), Y.to(torch.uint8))],
    **{name: [{"ids": X, "extra": Z, name: Y}] for name in LABEL_NAMES},
}


@pytest.fixture(scope="module")
def plain():
    return DIPModule(TwoInputs().eval()).fit_density([((X, Z), Y)])


@pytest.mark.parametrize("loader", sample_of(FORMS.values(), 0, 2, 3, 5, 10), ids=FORMS)
def test_batches_of_any_form(loader, plain):
    found = DIPModule(TwoInputs().eval()).fit_density(loader)
    assert torch.equal(found(X, Z).log_evidence, plain(X, Z).log_evidence)
    by_name, nested = found(ids=X, extra=Z), found(nested={"a": X, "b": (Z,)})
    assert torch.equal(by_name.mean, plain(X, Z).mean)
    assert torch.equal(nested.mean, plain(X, Z).mean)


def test_unpack_takes_any_other_form_apart():
    batch = {"first": X, "rest": [Z, Y]}
    found = DIPModule(TwoInputs().eval()).fit_density(
        [batch], unpack=lambda b: ({"ids": b["first"], "extra": b["rest"][0]}, b["rest"][1])
    )
    assert found.n_ == pytest.approx(270, abs=2)


def test_a_data_loader_and_its_batches_do_not_matter():
    data = torch.utils.data.TensorDataset(X, Y)
    one = DIPModule(mlp()).fit_density([(X, Y)])
    many = DIPModule(mlp()).fit_density(torch.utils.data.DataLoader(data, batch_size=17))
    torch.testing.assert_close(many(X).log_evidence, one(X).log_evidence)


def test_held_out_rows_are_not_in_the_density():
    network, seen = mlp(), []
    module = DIPModule(network, density=ClassGaussians(dtype=torch.float64), score="density")
    module.fit_density(batched(X, Y))
    places = np.arange(1, 301)
    held = places * (np.sqrt(5) - 1) / 2 % 1 < 0.1
    assert 28 <= held.sum() <= 32
    density = ClassGaussians(dtype=torch.float64)
    with torch.no_grad():
        features = network[:2](X)
        density.update(features[~held], Y[~held], 3)
        expected = density.finish()(features[held])
    seen.extend(expected.sort().values)
    assert module.n_ == (~held).sum()
    rank = int(np.floor(0.05 * (held.sum() + 1)))
    assert module.offset_ == pytest.approx(float(round_down(seen[rank - 1])), rel=1e-12)


def numbered(n, start=0):
    i = torch.arange(start, start + n)
    return Rows(i[:, None].double(), i[:, None].double(), i)


@pytest.mark.parametrize(("share", "most"), [(0.1, 5000), (0.37, 100), (0.5, 64)])
def test_every_row_is_seen_once_and_few_are_kept(share, most):
    split, given = HoldOut(share, most), []
    for start in range(0, 3000, 70):
        given += [part.labels for part in split.split(numbered(70, start))]
        assert sum(map(len, split.rows())) <= most
    held = torch.cat([rows.labels for rows in split.rows()])
    assert torch.equal(torch.cat([*given, held]).sort().values, torch.arange(43 * 70))
    assert len(held) == pytest.approx(0.1 * 3010, abs=3) or 0.9 * most - 1 < len(held) <= most
    # spread over the whole loader, and in step with no period
    counts = np.bincount(held.numpy() * 10 // 3010, minlength=10)
    assert counts.min() >= 0.6 * counts.mean()
    for period in (2, 3, 5, 7, 10, 100):
        share = len(held) / 3010
        by_phase = np.bincount(held.numpy() % period, minlength=period) / (3010 / period)
        assert period == 100 or np.abs(by_phase - share).max() < 0.5 * share


def test_calibration_leaves_all_rows_to_the_density():
    module = DIPModule(mlp()).fit_density(batched(X, Y), calibration=[blobs(100, 1)])
    assert module.n_ == 300


def fit(loader, network=None, **settings):
    model = {k: settings.pop(k) for k in ("classes", "density") if k in settings}
    return DIPModule(network or mlp(), **model).fit_density(loader, **settings)


class Scaled(nn.Module):
    def __init__(self, factor, dtype):
        super().__init__()
        self.factor, self.head = factor, nn.Linear(4, 3).to(dtype)

    def forward(self, x):
        return self.head(x.to(self.head.weight.dtype) * self.factor)


BAD = X.clone()
BAD[62, 1] = torch.nan
WIDE = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 3)).eval()
NO_LABELS = r"batch 0 of loader holds no labels.*unpack="
NO_BATCHES = r"loader must yield batches.*pass \[\(inputs"
DATASET = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(X), batch_size=9)
USED = iter([(X, Y)])
list(USED)
#: Loader, settings, error, and what it names.
REFUSED = [
    *((loader, {}, ValueError, NO_LABELS) for loader in ([X], [(X,)], [{"ids": X}], [(X, None)])),
    (DATASET, {}, ValueError, NO_LABELS),
    *((loader, {}, TypeError, NO_BATCHES) for loader in (3, X, {"x": X})),
    ([(X, Y, Y)], {}, TypeError, "tuple of 3; say how to take it apart: unpack="),
    ([3], {}, TypeError, "got int"),
    ([{"x": X, "y": Y, "labels": Y}], {}, ValueError, r"several labels, \['labels', 'y'\]"),
    ([(X, Y)], {"unpack": lambda batch: X}, TypeError, "unpack must give a tuple .*got a tensor"),
    ([(X, Y.double())], {}, ValueError, r"class indices.*float64 of shape \(300,\)"),
    ([(X, nn.functional.one_hot(Y))], {}, ValueError, r"int64 of shape \(300, 3\).*argmax"),
    ([(X, Y > 0)], {}, ValueError, "torch.bool"),
    ([(X, ["cat"] * 300)], {}, TypeError, "class indices.*classes="),
    ([(X, Y + 1)], {}, ValueError, r"labels of batch 0.* 0\.\.2, got 1\.\.3"),
    ([(X, Y - 1)], {}, ValueError, r"got -1\.\.1"),
    ([(X, Y[:100])], {}, ValueError, "300 rows of features, 300 of logits and 100 labels"),
    ([(X, Y)], {"classes": ["a", "b"]}, ValueError, "must name the 3 classes.*got 2 names"),
    ([(X, Y % 2)], {}, ValueError, r"classes \[2\] have no row"),
    *(
        (loader, {}, ValueError, "loader gave no rows.*at least one batch")
        for loader in ([], USED, [(X[:0], Y[:0])])
    ),
    ([(X, Y)], {"calibration": []}, ValueError, "calibration gave no rows"),
    ([(X[:4], Y[:4])], {}, ValueError, "none of the 4 rows of the loader is held out"),
    (batched(BAD, Y), {}, ValueError, "features of batch 1 of loader.* row 12 holds nan"),
    (
        batched(X, Y),
        {"calibration": batched(BAD, Y)},
        ValueError,
        "features of batch 1 of calibration.* row 12",
    ),
    (
        [(X, Y)],
        {"network": Scaled(1e6, torch.float16).eval()},
        ValueError,
        "inf; float16 overflows at 65504.*bfloat16",
    ),
    (
        [blobs(60)],
        {"network": WIDE, "density": ClassGaussians(shrinkage=None)},
        ValueError,
        "singular",
    ),
    ([(X[:, :2], Y)], {}, ValueError, r"batch 0 of loader must.*\(300, 2\).*in_features=4"),
]


@pytest.mark.parametrize(("loader", "settings", "error", "message"), REFUSED)
def test_what_a_fit_refuses(loader, settings, error, message):
    with pytest.raises(error, match=message):
        fit(loader, **settings)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_network_that_ends_in_softmax_is_refused(dtype):
    """On the rows that calibrate alone; one row that is none is enough to take them for logits."""
    softmaxed = nn.Sequential(mlp(), nn.Softmax(dim=1)).to(dtype)
    X, y = blobs(300)
    rows = batched(X.to(dtype), y)
    for settings in ({}, {"calibration": rows}):
        with pytest.raises(ValueError, match=r"gives probabilities.*Leave out the softmax"):
            DIPModule(softmaxed, features="0.1").fit_density(rows, **settings)
    P = torch.softmax(torch.randn(50, 3), dim=1)
    assert on_simplex(torch.cat([P, P[:1] + 0.1, torch.tensor([[1.5, -0.5, 0]])])).sum() == len(P)


def test_a_generator_is_enough_for_one_pass_but_not_for_two():
    fit(iter(batched(X, Y)))
    module = DIPModule.paper(mlp())
    with pytest.raises(ValueError, match=r"loader is read twice.*DataLoader or a list"):
        module.fit_density(iter(batched(X, Y)))
    assert module.fit_density(batched(X, Y)).n_ == 300


def test_fewer_rows_than_dimensions():
    assert fit([blobs(60)], WIDE).density_.n_features_ == 64


class Greedy(nn.Module):
    """Runs out of memory above a number of rows."""

    def __init__(self, error):
        super().__init__()
        self.error, self.head = error, nn.Linear(4, 3)

    def forward(self, x):
        if len(x) > 32:
            raise self.error
        return self.head(x)


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried"),
    ],
    ids=["GPU", "CPU"],
)
def test_out_of_memory_names_a_batch_size(error):
    network = Greedy(error).eval()
    with pytest.raises(MemoryError, match=r"a batch of 50 rows; try batches of 25 \(batch_size=25"):
        fit(batched(X, Y), network)
    module = fit(batched(X, Y, 32), network)
    with pytest.raises(MemoryError, match="try batches of 150"):
        module(X)


def test_a_network_without_parameters_is_on_the_cpu():
    class Fixed(nn.Module):
        def forward(self, x):
            return x[:, :3]

    module = DIPModule(Fixed().eval(), features=lambda net, x: (x, net(x)))
    assert module.fit_density([(X, Y)])(X).mean.shape == (300, 3)


def test_a_fit_that_fails_leaves_the_module_as_it_was():
    module = DIPModule(mlp()).fit_density([(X, Y)])
    expected = module(X)
    with pytest.raises(ValueError, match="calibration gave no rows"):
        module.fit_density([(2 * X, Y)], calibration=[])
    assert torch.equal(module(X).log_evidence, expected.log_evidence)


def test_no_probabilities_are_kept_where_nothing_learns_from_them():
    module = DIPModule(mlp(), normalizer=Identity(), calibrator="passthrough")
    assert not module.head.needs_proba
    assert DIPModule(mlp(), normalizer=Identity()).head.needs_proba
    assert DIPModule(mlp(), calibrator="passthrough").head.needs_proba
    out = module.fit_density([(X, Y)], calibration=[blobs(100, 1)])(X)
    torch.testing.assert_close(out.log_evidence, np.log(300) + module.score_samples(X))


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(9, 8), nn.Linear(8, 3)

    def forward(self, ids):
        return self.head(self.embed(ids).mean(1))


IMAGES, IDS = torch.randn(300, 1, 8, 8), torch.arange(1500).reshape(300, 5) % 9
NETWORKS = {
    "rows": (mlp(), X),
    "plain head": (nn.Linear(4, 3), X),
    "images": (nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(144, 3)).eval(), IMAGES),
    "tokens": (Tokens().eval(), IDS),
}
#: Network, inputs that it does not take, and what the error says besides the argument.
NOT_TAKEN = [
    (
        "rows",
        X[:, :2],
        ValueError,
        r"\(300, 2\).*layer '0', Linear\(in_features=4.*one row an input",
    ),
    ("rows", X[0, 0], ValueError, r"shape \(\).*one row an input"),
    ("plain head", X[0], ValueError, r"must have shape.*holds.*shape \(4,\)"),
    ("plain head", X[:, None], ValueError, r"must have shape.*holds.*\(300, 1, 4\)"),
    ("images", IMAGES[0], ValueError, r"shape \(1, 8, 8\).*layer '2', Linear.*X\[None\]"),
    ("images", IMAGES.permute(0, 2, 3, 1), ValueError, r"\(300, 8, 8, 1\).*layer '0', Conv2d\(1"),
    ("images", IMAGES[..., :6, :6], ValueError, r"\(300, 1, 6, 6\).*layer '2', Linear"),
    ("images", (255 * IMAGES).to(torch.uint8), TypeError, r"torch\.uint8.*next\(network\.para"),
    ("rows", X.double(), TypeError, r"torch\.float64.*X\.to\(next\(network\.parameters"),
    ("rows", X > 0, TypeError, r"torch\.bool.*X\.to\(next\(network\.parameters"),
    ("tokens", IDS.float(), TypeError, r"torch\.float32.*layer 'embed'.*X\.long\(\)"),
    ("tokens", IDS + 20, ValueError, r"torch\.int64.*layer 'embed', Embedding\(9, 8\).*values"),
    ("rows", X.numpy(), TypeError, r"torch tensors.*got ndarray.*torch\.as_tensor\(X, dtype="),
    ("rows", X.tolist(), TypeError, r"torch tensors.*got list.*torch\.as_tensor\(X, dtype="),
    ("rows", None, TypeError, r"torch tensors.*got NoneType.*torch\.as_tensor\(X, dtype="),
]
ENTRIES = {
    "fit_density": lambda module, rows: module.fit_density([(rows, Y)]),
    "calibration": lambda module, rows: module.calibrate([(rows, Y)]),
    "forward": lambda module, rows: module(rows),
    **{
        name: lambda module, rows, name=name: getattr(module, name)(rows)
        for name in (
            "scores_and_logits score_samples predict_dirichlet predict_ood p_value predict_set "
            "uncertainty answers explain"
        ).split()
    },
    "predict_with_reject": lambda module, rows: module.predict_with_reject(rows, coverage=0.9),
}
MODULES = {name: DIPModule(net).fit_density([(rows, Y)]) for name, (net, rows) in NETWORKS.items()}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(("name", "rows", "error", "message"), NOT_TAKEN)
def test_inputs_that_the_network_does_not_take(name, rows, error, message, entry):
    loader = {"fit_density": "batch 0 of loader", "calibration": "batch 0 of calibration"}
    with pytest.raises(error, match=message) as caught:
        ENTRIES[entry](MODULES[name], rows)
    assert f"{loader.get(entry, 'X')} " in str(caught.value)


def test_features_of_another_width_are_those_of_another_input():
    network = nn.Sequential(nn.Flatten(2), nn.AdaptiveAvgPool1d(6), nn.Flatten(), nn.Linear(6, 3))
    features = lambda net, x: (x.flatten(1), net(x))  # noqa: E731
    module = DIPModule(network.eval(), features=features).fit_density([(IMAGES, Y)])
    with pytest.raises(ValueError, match=r"features must have 64 columns.*X holds.*1, 6, 6"):
        module.p_value(IMAGES[..., :6, :6])
