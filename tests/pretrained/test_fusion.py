"""The fused score of a DIPModule is FusedDensity's formula of log-density and logit margin."""

import numpy as np
import pytest
import torch
from scipy import special

from dipedl.pretrained.evidence_head import ConfidenceFusion, _table, logit_margin


def rows(seed, n, k=4):
    rng = np.random.default_rng(seed)
    return rng.normal(-500, 40, n), rng.normal(0, 3, (n, k))


def fitted(dtype):
    log_density, logits = rows(0, 300)
    fusion = ConfidenceFusion(dtype)
    fusion.learn(log_density, logits)
    return fusion


def reference(log_density, logits, table=_table):
    """The formula of FusedDensity by scipy, given tables of the same rows."""
    held, held_logits = rows(0, 300)
    sure = [[np.mean(row.max() - row) for row in x] for x in (held_logits, logits)]
    z_d = table("log-density", held).transform(log_density)
    z_c = table("logit margin", np.array(sure[0])).transform(np.array(sure[1]))
    objection = special.log_ndtr(z_d + 1) + special.log_ndtr(z_c)
    return -np.sqrt(-2 * objection) + 1e-3 * (z_d + z_c) / 2


@pytest.mark.parametrize(("dtype", "rtol"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_score_is_that_of_fused_density(dtype, rtol):
    log_density, logits = rows(1, 500)
    log_density[:4] = [-1e4, -1e6, 300.0, -500.0]
    logits[4] = [60.0, 0, 0, 0]
    logits[5] = 0
    got = fitted(dtype)(torch.tensor(log_density, dtype=dtype), torch.tensor(logits, dtype=dtype))
    expected = reference(log_density, logits)
    np.testing.assert_allclose(got.double(), expected, rtol=rtol, atol=20 * rtol)


def test_the_logit_margin_is_that_of_the_probabilities():
    _, logits = rows(1, 50)
    expected = [np.mean([max(row) - logit for logit in row]) for row in logits]
    shifted = logits + np.linspace(-5, 5, 50)[:, None]
    for same in (logits, shifted, special.log_softmax(logits, axis=1)):
        np.testing.assert_allclose(logit_margin(same), expected)
        np.testing.assert_allclose(logit_margin(torch.from_numpy(same)), expected)
    two = logits[:, :2]
    order = np.argsort(special.softmax(two, axis=1).max(axis=1))
    assert np.array_equal(np.argsort(logit_margin(two)), order)


def test_a_class_that_is_ruled_out_hides_none_of_the_others():
    """A class masked with -inf, as language models do, is the same for all rows."""
    _, logits = rows(1, 50)
    masked = np.column_stack([logits, np.full(50, -np.inf)])
    expected = (4 * logit_margin(logits) + 100) / 5
    np.testing.assert_allclose(logit_margin(masked), expected)


def test_a_held_out_row_takes_no_part_in_its_own_tables():
    """Else the lowest row is never beyond the rows seen, as a new one is."""
    log_density, logits = rows(0, 200)
    scores = ConfidenceFusion(torch.float64).learn(log_density, logits)
    for block in (0, 7):
        own = np.arange(200) % 20 == block
        others = ConfidenceFusion(torch.float64)
        others.learn(log_density[~own], logits[~own])
        got = others(torch.tensor(log_density[own]), torch.tensor(logits[own]))
        np.testing.assert_allclose(scores[own], got, rtol=1e-12)


def test_what_never_varies_is_refused():
    log_density, logits = rows(0, 100)
    with pytest.raises(
        ValueError, match=r"logit margin is the same.*held-out rows.*score='density'"
    ):
        ConfidenceFusion(torch.float64).learn(log_density, 0 * logits)


def test_it_is_finite_however_far():
    far = torch.tensor([-3e38, 3e38, -torch.inf])
    assert fitted(torch.float32)(far, torch.tensor([[1.0, 0, 0, 0]] * 3)).isfinite().all()


def test_a_first_piece_that_rounding_leaves_no_width_still_objects():
    """Most rows on the lowest value, and the next one is all that float32 can tell from it."""
    low = np.float32(-1e6)
    _, logits = rows(0, 300)
    log_density = low + np.concatenate([np.zeros(270), np.arange(30) + 1 / 16])
    fusion = ConfidenceFusion(torch.float32)
    fusion.learn(log_density, logits)
    assert fusion.knots[0, 0] == fusion.knots[0, 1]
    far = fusion(torch.tensor([-1e6, -2e6, -torch.inf]), torch.tensor(logits[:3]).float())
    assert far.isfinite().all() and far[2] <= far[1] < far[0]
