import numpy as np
import pytest

torch = pytest.importorskip("torch")

from dipedl.baselines import REDL, ReEDL  # noqa: E402


def test_the_loss_does_not_know_the_epoch():
    logits, y = torch.randn(6, 3, generator=torch.Generator().manual_seed(0)), torch.arange(6) % 3
    model = ReEDL(lambda2=0.8)
    first, last = (model._loss(logits, y, epoch=t) for t in (0, 50))
    assert first == last
    e = torch.nn.functional.softplus(logits) + 0.8
    label = torch.nn.functional.one_hot(y, 3)
    expected = (label - e / e.sum(dim=1, keepdim=True)).square().sum(dim=1).mean()
    torch.testing.assert_close(first, expected)


def test_published_configuration_is_that_of_redl():
    mine, other = ReEDL.as_published(image_shape=(28, 28)), REDL.as_published()
    assert mine.training == other.training and mine.backbone == other.backbone
    assert mine.lambda2 == other.lambda2 == 0.1 and mine.image_shape == (28, 28)
    np.testing.assert_equal(mine.random_state, 0)
