"""Decisions of a DIPModule, and the rows that they rest on."""

import warnings

import numpy as np
import pytest
import torch
from torch import nn

from dipedl.density import GDADensity
from dipedl.evidence_model import EvidenceModel
from dipedl.pretrained import ClassGaussians, DIPModule

CENTRES = 2.0 * np.eye(3, 4)


class Branchy(nn.Module):
    """A network of two arguments."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, 3)

    def forward(self, x, shift=0.0):
        return self.head(torch.tanh(self.body(x + shift)))


def network(dtype=torch.float32):
    """The Bayes rule of the blobs behind one invertible layer."""
    torch.manual_seed(0)
    made = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 3))
    with torch.no_grad():
        made[1].weight.copy_(torch.tensor(CENTRES).float() @ torch.linalg.inv(made[0].weight))
        made[1].bias.copy_(-torch.tensor((CENTRES**2).sum(1) / 2))
    return made.to(dtype).eval()


def blobs(n, seed=0, dtype=torch.float32):
    """Rows and labels; `seed` may be a generator."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    X = CENTRES[y] + rng.normal(size=(n, 4))
    return torch.tensor(X).to(dtype), torch.tensor(y)


@pytest.fixture(scope="module")
def module():
    return DIPModule(network(), classes=["ant", "bee", "cat"]).fit_density([blobs(600)])


def test_answers_are_tensors_on_the_device_and_agree_with_the_forward_pass(module):
    X, _ = blobs(50, seed=2)
    out = module(X)
    p, sets = module.p_value(X), module.predict_set(X)
    assert p.dtype == torch.float64 and sets.dtype == torch.bool and sets.shape == (50, 3)
    assert torch.equal(module.predict_ood(X) == -1, p <= module.false_alarm_rate)
    u = module.uncertainty(X)
    torch.testing.assert_close(u, out.vacuity.double(), rtol=1e-4, atol=1e-6)
    total = module.predict_dirichlet(X).total.double()
    torch.testing.assert_close(module.uncertainty(X, "total"), total, rtol=1e-4, atol=1e-6)
    torch.testing.assert_close(
        module.uncertainty(X, "log_density"), -module.score_samples(X).double()
    )
    answer = module.predict_with_reject(X, coverage=0.9)
    assert set(answer.labels) == {"ant", "bee", "cat"}


def test_a_batch_is_a_tensor_a_tuple_or_a_dict():
    (X, y), net = blobs(200), Branchy().eval()
    model = DIPModule(net).fit_density([({"x": X}, y)])
    shift = torch.ones(len(X), 1)
    wanted = model.p_value({"x": X + 1})
    assert torch.equal(model.p_value({"x": X, "shift": shift}), wanted)
    assert torch.equal(model.p_value((X, shift)), wanted)
    assert torch.equal(model.predict_ood(X, shift=shift, alpha=0.2) == -1, wanted <= 0.2)
    assert model.explain({"x": X[:2], "shift": shift[:2]})[1].p_value == wanted[1]


def test_a_score_that_is_no_number_is_refused_and_flagged(module):
    X, _ = blobs(3)
    X[1, 2] = torch.nan
    for answer in (module.p_value, module.predict_dirichlet):
        with pytest.raises(ValueError, match="X must not hold NaN, and row 1 gives a score"):
            answer(X)
    assert module.predict_ood(X)[1] == -1 and module.predict_ood(X, alpha=0.1)[1] == -1


@pytest.mark.parametrize("score", ["fused", "density"])
@pytest.mark.parametrize("way", ["state_dict", "file"])
def test_decisions_come_back_with_the_module(way, score, tmp_path, monkeypatch):
    model = DIPModule(network(), score=score).fit_density([blobs(600)])
    learned = []
    learn = EvidenceModel.learn
    monkeypatch.setattr(
        EvidenceModel, "learn", lambda *args, **kwargs: learned.append(1) or learn(*args, **kwargs)
    )
    if way == "file":
        model.save(tmp_path / "module.safetensors")
        again = DIPModule.load(tmp_path / "module.safetensors", network())
    else:
        torch.save(model.state_dict(), tmp_path / "state.pt")
        again = DIPModule(network(), score=score)
        again.source.look((blobs(2)[0],), {})
        again.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    X, _ = blobs(60, seed=3)
    assert torch.equal(again.p_value(X), model.p_value(X))
    assert torch.equal(again.predict_set(X, 0.8, "aps"), model.predict_set(X, 0.8, "aps"))
    np.testing.assert_array_equal(again.reject_curve().upper, model.reject_curve().upper)
    assert str(again.explain(X[:1])[0]) == str(model.explain(X[:1])[0])
    assert again.diagnose().to_dict() == model.diagnose().to_dict()
    # A file or state holds what its fit has learned.
    assert not learned


def test_the_evidence_side_is_what_the_head_has(module):
    head, evidence = module.head, module.evidence_
    assert head.offset.dtype == torch.float32 and float(head.offset) == np.float32(evidence.offset_)
    for name in ("location", "scale", "log_odds"):
        wanted = getattr(evidence.normalizer_, f"{name}_")
        assert float(getattr(head, name)) == pytest.approx(wanted, rel=1e-6)
    assert float(head.temperature) == pytest.approx(evidence.temperature_, rel=1e-6)


def test_kept_rows_stay_on_the_host_and_out_of_graphs(module):
    assert not any(name.startswith("held_out") for name, _ in module.named_buffers())
    half = DIPModule(network()).fit_density([blobs(600)]).half()
    assert half.held_out.logits.dtype == torch.float32
    program = torch.export.export(module, (blobs(4)[0],))
    assert not any(
        "held_out" in spec.target for spec in program.graph_signature.input_specs if spec.target
    )


def test_a_state_without_its_rows_is_refused_or_says_what_it_lacks(module):
    state = {k: v for k, v in module.state_dict().items() if not k.startswith("held_out.")}
    other = DIPModule(network())
    other.source.look((blobs(2)[0],), {})
    with pytest.raises(RuntimeError, match=r"Missing key.*held_out\.scores"):
        other.load_state_dict(state)
    other.load_state_dict(state, strict=False)
    X, _ = blobs(5)
    assert torch.equal(other.predict_ood(X), module.predict_ood(X))
    with pytest.raises(ValueError, match=r"no held-out rows.*module\.calibrate\(loader\)"):
        other.p_value(X)
    assert other.calibrate([blobs(100, seed=4)]).p_value(X).shape == (5,)
    other.load_state_dict(module.state_dict() | {"held_out.source": torch.empty(0)})
    with pytest.raises(ValueError, match=r"where they come from.*module\.calibrate\(loader\)"):
        other.p_value(X)


def test_calibrate_is_the_fit_with_calibration_data():
    data, held = [blobs(600)], [blobs(300, seed=5)]
    at_once = DIPModule(network()).fit_density(data, calibration=held)
    model = DIPModule(network()).fit_density(data, calibration=[blobs(90, seed=6)])
    before = model.p_value(held[0][0])
    model.calibrate(held)
    X, _ = blobs(40, seed=7)
    assert torch.equal(model(X).concentration, at_once(X).concentration)
    assert torch.equal(model.p_value(X), at_once.p_value(X))
    assert not torch.equal(model.p_value(held[0][0]), before)
    assert model.diagnose().source == "300 held-out inputs"


def test_the_paper_s_rows_were_fitted_on_and_promise_nothing():
    model = DIPModule.paper(network()).fit_density([blobs(300)])
    X, _ = blobs(10, seed=8)
    assert model.p_value(X).shape == (10,) and len(model.held_out.scores) == 300
    with pytest.raises(ValueError, match=r"in-sample rows.*module\.calibrate\(loader\)"):
        model.predict_set(X)
    assert model.predict_with_reject(X, coverage=0.5, kind="log_density").accepted.shape == (10,)
    assert "calibration_in_sample" in model.diagnose().codes
    assert model.calibrate([blobs(100, seed=9)]).predict_set(X).shape == (10, 3)


def test_at_most_so_many_rows_are_kept(monkeypatch):
    monkeypatch.setattr("dipedl.pretrained.dip_module.ENOUGH", 50)
    model = DIPModule(network()).fit_density([blobs(300)], calibration=[blobs(120, seed=1)])
    assert len(model.held_out.scores) == 50 == len(model.held_out.logits)
    assert model.diagnose().source == "50 held-out inputs"


FORMS = [
    ("full", GDADensity("full")),
    ("tied", GDADensity("tied")),
    ("diagonal", GDADensity("diag")),
]


@pytest.mark.parametrize(("covariance", "density"), FORMS, ids=lambda form: str(form))
def test_cards_are_those_of_the_classifier_on_the_same_features(covariance, density):
    """DIPClassifier with GDADensity is the reference, by other code."""
    gaussians = ClassGaussians(covariance, dtype=torch.float64)
    net = network(torch.float64)
    (X, y), (H, h) = blobs(400, dtype=torch.float64), blobs(200, seed=1, dtype=torch.float64)
    model = DIPModule(net, density=gaussians, score="density")
    model.fit_density([(X, y)], calibration=[(H, h)])
    feature = lambda rows: net[0](rows).detach().numpy()  # noqa: E731
    reference = density.fit(feature(X), y.numpy())
    new = torch.cat([blobs(5, seed=2, dtype=torch.float64)[0], 5 * torch.eye(4).double()])
    wanted = reference.explain_rows(feature(new), top=4)
    for card, row in zip(model.explain(new, top=4), wanted, strict=True):
        found = card.parts[0]
        assert found["class"] == row["class"]
        assert found["squared_distance"] == pytest.approx(row["squared_distance"], rel=1e-8)
        order = [sorted(r["features"], key=lambda e: e["feature"]) for r in (found, row)]
        for a, b in zip(*order, strict=True):
            assert a["contribution"] == pytest.approx(b["contribution"], rel=1e-7, abs=1e-9)
            assert (a["value"], a["mean"]) == pytest.approx((b["value"], b["mean"]), rel=1e-9)
            assert a["name"] == f"feature {a['feature']}"


def test_contributions_of_a_low_rank_covariance_sum_to_the_distance():
    gaussians = ClassGaussians("low-rank", rank=2, dtype=torch.float64)
    model = DIPModule(network(torch.float64), density=gaussians, score="density")
    model.fit_density([blobs(400, dtype=torch.float64)])
    X = blobs(6, seed=2, dtype=torch.float64)[0]
    features = model.source(X)[0].detach()
    squared = model.density_.distance(features - model.density_.origin).min(dim=1).values
    for card, wanted in zip(model.explain(X, top=2), squared, strict=True):
        reading = card.parts[0]
        parts = sum(e["contribution"] for e in reading["features"]) + reading["rest"]
        assert parts == pytest.approx(float(wanted), rel=1e-9)


def test_a_fused_score_is_explained_by_its_two_parts(module):
    X, _ = blobs(4, seed=2)
    card = module.explain(X, top=2)[0]
    assert [part["part"] for part in card.parts] == ["density", "confidence"]
    with torch.no_grad():
        log_density = module.density_(module.source(X)[0])
    assert card.parts[0]["score"] == pytest.approx(float(log_density[0]), rel=1e-6)
    assert card.parts[1]["kind"] == "score" and "normal_score" in card.parts[1]


def test_rows_of_the_loader_do_not_pass_for_calibration_rows():
    rows, new = blobs(300), blobs(300, seed=1)
    with pytest.warns(UserWarning, match="300 inputs, many of them given to fit too"):
        model = DIPModule(network()).fit_density([rows], calibration=[rows])
    found = [f.code for f in model.diagnose().warnings]
    assert found == ["calibration_given_to_fit", "intervals_of_seen_rows"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not model.fit_density([rows], calibration=[new]).diagnose().warnings


def test_a_network_without_an_error_on_rows_of_its_loader_is_warned_of():
    X, _ = blobs(1500)
    known = network()(X).argmax(dim=1)
    with pytest.warns(UserWarning, match=r"no error at all.*module\.calibrate\(loader\)") as caught:
        DIPModule(network()).fit_density([(X, known)])
    assert caught[0].filename == __file__
