import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dipedl.networks import evidence_from_logits, log_evidence_from_logits  # noqa: E402

NAMES = ["relu", "softplus", "exp"]


@pytest.mark.parametrize("name", NAMES)
def test_log_of_the_total_is_that_of_the_evidence(name, rng):
    logits = torch.from_numpy(rng.normal(0, 8, (50, 4)))
    evidence = evidence_from_logits(logits, name)
    assert (evidence >= 0).all()
    total = evidence.sum(dim=1).log()
    torch.testing.assert_close(log_evidence_from_logits(logits, name), total)


def test_values():
    x = torch.tensor([[-2.0, 0.0, 3.0]], dtype=torch.float64)
    np.testing.assert_allclose(evidence_from_logits(x, "relu"), [[0, 0, 3]])
    np.testing.assert_allclose(evidence_from_logits(x), np.log1p(np.exp(x.numpy())))
    np.testing.assert_allclose(evidence_from_logits(x, "exp"), np.exp(x.numpy()))


@pytest.mark.parametrize("name", ["softplus", "exp"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_far_rows_do_not_tie_and_do_not_overflow(name, dtype):
    levels = torch.tensor([-1e4, -800, -200, -41, -39, -20, 0, 50, 200, 1e4], dtype=dtype)
    logits = levels[:, None].expand(-1, 3)
    log_evidence = log_evidence_from_logits(logits, name)
    assert (log_evidence.diff() > 0).all() and torch.isfinite(log_evidence).all()
    assert torch.isfinite(evidence_from_logits(logits, name).sum(dim=1)).all()


def test_no_evidence_of_relu_has_no_log():
    assert log_evidence_from_logits(torch.full((1, 3), -1.0), "relu").item() == -np.inf


@pytest.mark.parametrize("name", NAMES)
def test_gradients(name):
    logits = torch.tensor([[-45.0, -3.0, 0.7, 5.0]], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: evidence_from_logits(x, name), (logits,))


@pytest.mark.parametrize("function", [evidence_from_logits, log_evidence_from_logits])
def test_unknown_function(function):
    with pytest.raises(ValueError, match=r"one of \['exp', 'relu', 'softplus'\], got 'tanh'"):
        function(torch.zeros(1, 2), "tanh")
