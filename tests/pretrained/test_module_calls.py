"""A batch in every form of a call, and without a row, in every method of a DIPModule."""

from collections import namedtuple
from threading import Thread

import numpy as np
import pytest
import torch
from torch import nn

from dipedl.explanation import explain
from dipedl.pretrained import DIPModule
from weekly import sample_of


class TwoInputs(nn.Module):
    """Takes two tensors by position or by name."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(3)
        self.body = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3))

    def forward(self, ids, mask=None):
        rows = ids if mask is None else ids * mask
        # The idiom of many networks, which fails without a row.
        return self.body(rows.view(rows.size(0), -1))


class OneTuple(TwoInputs):
    """Takes one tuple of two tensors."""

    def forward(self, pair):
        return super().forward(*pair)


class OneDict(TwoInputs):
    """Takes one mapping as its argument."""

    def forward(self, batch):
        return super().forward(batch["image"])


def rows(n, seed):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 3
    return torch.tensor(rng.normal(size=(n, 4)) + 2 * np.eye(4)[y]).float(), torch.tensor(y)


X, Y = rows(300, 0)
HELD, HELD_Y = rows(150, 1)
NEW = rows(7, 2)[0]
MASK = (torch.arange(4) < 3).float().expand(7, 4)
FULL = torch.ones(150, 4)


def parts(answer, *names):
    return [getattr(answer, name) for name in names]


#: Each method as a call with a batch, and what is compared of its answer.
METHODS = {
    "model": lambda model, *a, **k: list(model(*a, **k)),
    "scores_and_logits": lambda model, *a, **k: list(model.scores_and_logits(*a, **k)),
    "score_samples": lambda model, *a, **k: [model.score_samples(*a, **k)],
    "predict_dirichlet": lambda model, *a, **k: [model.predict_dirichlet(*a, **k).concentration],
    "predict_ood": lambda model, *a, **k: [model.predict_ood(*a, alpha=0.3, **k)],
    "p_value": lambda model, *a, **k: [model.p_value(*a, random_state=0, **k)],
    "predict_set": lambda model, *a, **k: [model.predict_set(*a, coverage=0.8, **k)],
    "by class": lambda model, *a, **k: [
        model.predict_set(*a, coverage=0.8, by_class=True, **k),
        model.predict_ood(*a, alpha=0.3, by_class=True, **k),
    ],
    "aps": lambda model, *a, **k: [model.predict_set(*a, method="aps", **k)],
    "predict_with_reject": lambda model, *a, **k: parts(
        model.predict_with_reject(*a, coverage=0.5, **k), "labels", "accepted"
    ),
    "decide": lambda model, *a, **k: parts(
        model.decide(*a, cost_error=5, cost_reject=1, **k), "labels", "accepted"
    ),
    "risk": lambda model, *a, **k: [model.predict_with_reject(*a, risk=0.3, **k).accepted],
    "vacuity": lambda model, *a, **k: [model.uncertainty(*a, **k)],
    "total": lambda model, *a, **k: [model.uncertainty(*a, kind="total", **k)],
    "log_density": lambda model, *a, **k: [model.uncertainty(*a, kind="log_density", **k)],
    "answers": lambda model, *a, **k: parts(
        model.answers(*a, **k), "labels", "p_values", "flagged"
    ),
    "explain": lambda model, *a, **k: [
        np.array([card.p_value for card in model.explain(*a, top=2, **k)])
    ],
}
FORMS = {
    "one tuple": (((NEW, MASK),), {}),
    "one list": (([NEW, MASK],), {}),
    "one dict": (({"ids": NEW, "mask": MASK},), {}),
    "by name": ((), {"ids": NEW, "mask": MASK}),
    "by both": ((NEW,), {"mask": MASK}),
    "named tuple": ((namedtuple("Pair", "ids mask")(NEW, MASK),), {}),
}


@pytest.fixture(scope="module", params=["fused", "density", "spread"])
def model(request):
    kind = request.param
    settings = {"spread": None} if kind == "spread" else {"score": kind}
    module = DIPModule(TwoInputs().eval(), **settings)
    return module.fit_density([(X, Y)], calibration=[(HELD, HELD_Y)])


def array(values):
    return np.asarray(values.detach() if isinstance(values, torch.Tensor) else values)


def same(found, wanted):
    for mine, theirs in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(array(mine), array(theirs))


@pytest.mark.parametrize("method", METHODS)
def test_every_form_of_a_call_gives_the_same(model, method):
    ask = METHODS[method]
    wanted = ask(model, NEW * MASK)
    same(ask(model, NEW, MASK), wanted)
    for args, kwargs in FORMS.values():
        same(ask(model, *args, **kwargs), wanted)


@pytest.mark.parametrize("form", sample_of(FORMS, 0, 1, 3, 5))
def test_loaders_take_every_form_too(form):
    args, kwargs = FORMS[form]
    if len(args) + len(kwargs) > 1:
        batch = {"ids": HELD, "mask": FULL}
    else:
        (batch,) = args
        batch = {"ids": HELD, "mask": FULL} if isinstance(batch, dict) else (HELD, FULL)
    plain = DIPModule(TwoInputs().eval()).fit_density([(X, Y)]).calibrate([(HELD, HELD_Y)])
    found = DIPModule(TwoInputs().eval()).fit_density([(X, Y)]).calibrate([(batch, HELD_Y)])
    assert torch.equal(found.p_value(NEW), plain.p_value(NEW))


def test_options_by_position_follow_one_batch(model):
    for batch in (NEW, (NEW, MASK), {"ids": NEW, "mask": MASK}):
        assert torch.equal(
            model.uncertainty(batch, "total"), model.uncertainty(batch, kind="total")
        )
        assert torch.equal(model.predict_set(batch, 0.7), model.predict_set(batch, coverage=0.7))
        assert torch.equal(model.p_value(batch, 1), model.p_value(X=batch, random_state=1))
        assert len(model.explain(batch, 1)) == len(explain(model, batch)) == 7


@pytest.mark.parametrize(
    ("network", "batch"),
    [(OneTuple, lambda X: (X, torch.ones_like(X))), (OneDict, lambda X: {"image": X})],
)
def test_a_network_of_one_tuple_or_mapping_gets_it_whole(network, batch):
    plain = DIPModule(TwoInputs().eval()).fit_density([(X, Y)])
    model = DIPModule(network().eval()).fit_density([(batch(X), Y)])
    for method in METHODS.values():
        same(method(model, batch(NEW)), method(plain, NEW))


@pytest.mark.parametrize("method", METHODS)
def test_no_rows_have_no_answers(model, method):
    ask = METHODS[method]
    some, none = ask(model, NEW), ask(model, NEW[:0])
    for form in ((NEW[:0], MASK[:0]), {"ids": NEW[:0]}, [NEW[:0]]):
        same(ask(model, form), none)
    for mine, theirs in zip(none, some, strict=True):
        assert len(mine) == 0
        assert mine.shape[1:] == theirs.shape[1:] and (
            mine.dtype == theirs.dtype or method == "explain"
        )


def test_loaders_may_hold_empty_batches():
    empty = [(X[:0], Y[:0]), (X[:0], [])]
    plain = DIPModule(TwoInputs().eval()).fit_density([(X, Y)])
    found = DIPModule(TwoInputs().eval()).fit_density([empty[0], (X, Y), *empty])
    assert torch.equal(found.p_value(NEW), plain.p_value(NEW))
    with pytest.raises(ValueError, match="calibration"):
        found.calibrate(empty)


MISNAMED = {
    "image and label": {"image": X, "label": Y},
    "img and target": {"img": X, "target": Y},
    "one more key": {"ids": X, "path": ["a"] * 300, "labels": Y},
    "two images": {"left": X, "right": torch.ones(300, 4), "y": Y},
    "inputs of a pair": ({"image": X}, Y),
}


@pytest.mark.parametrize("network", [TwoInputs, lambda: TwoInputs().body])
@pytest.mark.parametrize("name", MISNAMED)
def test_a_loader_of_other_names_is_told_and_the_remedy_works(name, network):
    batch = MISNAMED[name]
    with pytest.raises(TypeError, match="batch 1 of loader") as caught:
        list_of = [(X, Y), batch]
        DIPModule(network().eval()).fit_density(list_of)
    keys = batch if isinstance(batch, dict) else batch[0]
    assert all(repr(key) in str(caught.value) for key in keys)
    if isinstance(batch, dict) and network is TwoInputs:
        remedy = str(caught.value).partition("unpack=")[2]
        unpack = eval(remedy)
        found = DIPModule(TwoInputs().eval()).fit_density([batch], unpack=unpack)
        plain = DIPModule(TwoInputs().eval()).fit_density([(X, Y)])
        assert torch.equal(found.p_value(NEW), plain.p_value(NEW))


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_of_other_names_is_told(model, method):
    for args, kwargs in (((({"image": NEW},)), {}), ((), {"image": NEW}), ((NEW,), {"image": NEW})):
        with pytest.raises(TypeError, match=r"image.*ids"):
            METHODS[method](model, *args, **kwargs)


def test_the_remedy_for_a_batch_of_other_names_answers_as_the_inputs_do(model):
    """A label must not be taken for an argument that the network can do without."""
    with pytest.raises(TypeError) as caught:
        model.p_value({"image": NEW, "label": torch.ones(len(NEW))})
    batch = {"image": NEW}
    remedy = eval(str(caught.value).rpartition("give ")[2], {"batch": batch})
    assert torch.equal(model.p_value(remedy), model.p_value(NEW))


def test_compiled_and_exported_modules_take_their_arguments():
    module = DIPModule(TwoInputs().eval(), score="density")
    model = module.fit_density([(X, Y)], calibration=[(HELD, HELD_Y)])
    exported = torch.export.export(model, (NEW, MASK)).module()
    torch.testing.assert_close(exported(NEW, MASK).mean, model((NEW, MASK)).mean)


def test_an_answer_reads_one_state():
    before, after = [(HELD, HELD_Y)], [(2 * HELD[:90], HELD_Y[:90])]

    class Interrupted(TwoInputs):
        """Calls what another thread would, once, while it is asked."""

        act = None

        def forward(self, ids):
            act, self.act = self.act, None
            if act is not None:
                thread = Thread(target=act)
                thread.start()
                thread.join()
            return super().forward(ids)

    model = DIPModule(Interrupted().eval())
    model.fit_density([(X, Y)], calibration=before)
    for name in ("model", "p_value", "answers"):
        method = METHODS[name]
        wanted = method(model, NEW)
        model.network.act = lambda: model.calibrate(after)
        same(method(model, NEW), wanted)
        assert model.network.act is None
        later = method(model, NEW)
        model.calibrate(before)
        model.network.act = lambda: model.fit_density([(X[:200], Y[:200])], calibration=after)
        same(method(model, NEW), wanted)
        model.fit_density([(X, Y)], calibration=before)
        same(method(model, NEW), wanted)
        model.calibrate(after)
        same(method(model, NEW), later)
        model.calibrate(before)
