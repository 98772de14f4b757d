"""Samples of deep ensembles and of MC dropout: loops over networks that really differ."""

import warnings

import numpy as np
import pytest
import torch
from scipy.special import softmax
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from dipedl.baselines import DeepEnsemble, MCDropout
from dipedl.baselines.mc_dropout import _with_dropout, sample_outputs
from dipedl.networks import MLP, FastCNN, LeNet5, TorchClassifier, Training
from dipedl.networks.backbones import Network
from normed_network import Normed

#: One step of no length: what is trained is what it started from.
STILL = Training(epochs=1, batch_size=60, optimizer="sgd", learning_rate=1e-12, n_jobs=1)
QUICK = Training(epochs=5, batch_size=16, learning_rate=0.02, n_jobs=1)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    images = rng.uniform(size=(3, 144))[y] + rng.normal(scale=0.1, size=(60, 144))
    return np.clip(images, 0, 1), y


def test_against_a_loop(data):
    X, y = data
    ensemble = DeepEnsemble(ExtraTreesClassifier(3, max_depth=2), n_members=4).fit(X, y)
    members = [
        ExtraTreesClassifier(3, max_depth=2, random_state=seed).fit(X, y).predict_proba(X)
        for seed in ensemble.member_seeds_
    ]
    mean = sum(members) / 4
    np.testing.assert_allclose(ensemble.predict_proba(X), mean, rtol=1e-12)

    def entropy(P):
        return -np.sum(P * np.log(np.where(P > 0, P, 1)), axis=1)

    naive = entropy(mean) - sum(map(entropy, members)) / 4
    np.testing.assert_allclose(ensemble.uncertainty(X), naive, atol=1e-12)
    np.testing.assert_allclose(ensemble.uncertainty(X, kind="entropy"), entropy(mean), rtol=1e-10)
    largest = ensemble.uncertainty(X, kind="max_prob")
    np.testing.assert_allclose(largest, 1 - mean.max(axis=1), atol=1e-12)


@pytest.mark.parametrize(
    "backbone", [Normed(4), FastCNN(width=4), LeNet5(dropout=0.0), MLP((16,))], ids=repr
)
def test_members_start_from_weights_of_their_own(data, backbone):
    """The released code copies one network and resets the copies: under spectral normalisation
    all of them keep the convolutions of the first."""
    ensemble = DeepEnsemble(TorchClassifier(backbone, STILL), n_members=3).fit(*data)
    weights = [
        {k: v for k, v in m.module_.named_parameters() if v.ndim > 1} for m in ensemble.members_
    ]
    assert len(weights[0]) >= 2
    for name in weights[0]:
        rows = torch.stack([w[name].flatten() for w in weights])
        gap = torch.cdist(rows, rows)[~torch.eye(3, dtype=bool)]
        # Two independent draws lie sqrt(2) of their length apart.
        assert (gap / rows.norm(dim=1).mean() > 1).all(), name


def test_every_part_of_a_pipeline_is_seeded(data):
    pipeline = make_pipeline(StandardScaler(), MLPClassifier((8,), max_iter=2, random_state=3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ensemble = DeepEnsemble(pipeline, n_members=3).fit(*data)
    seeds = [m[-1].random_state for m in ensemble.members_]
    assert seeds == ensemble.member_seeds_
    assert not np.allclose(ensemble.members_[0][-1].coefs_[0], ensemble.members_[1][-1].coefs_[0])
    assert pipeline[-1].random_state == 3


def test_members_that_are_all_alike_are_reported(data):
    with pytest.warns(UserWarning, match="agree to the last bit on 60 training inputs: fitting"):
        ensemble = DeepEnsemble(LogisticRegression(max_iter=2000), n_members=2).fit(*data)
    assert (ensemble.uncertainty(data[0]) == 0).all()


def test_trees_that_are_certain_of_their_own_rows_are_not_reported(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ensemble = DeepEnsemble(ExtraTreesClassifier(2), n_members=2).fit(*data)
    assert (ensemble.sample_proba(data[0])[0] == ensemble.sample_proba(data[0])[1]).all()
    assert (ensemble.uncertainty(data[0][:, ::-1]) > 0).any()


def test_validation_reaches_the_members(data):
    X, y = data
    ensemble = DeepEnsemble(TorchClassifier(MLP((8,)), QUICK), n_members=2)
    ensemble.fit(X, y, validation=(X[:9], y[:9]))
    assert all(m.history_.score[-1] is not None for m in ensemble.members_)
    DeepEnsemble(ExtraTreesClassifier(2), n_members=2).fit(X, y, validation=(X[:9], y[:9]))


def test_goes_on_after_a_kill_without_training_finished_members_again(data, tmp_path):
    X, y = data
    ensemble = DeepEnsemble(TorchClassifier(MLP((8,)), QUICK), n_members=3)
    whole = ensemble.fit(X, y).predict_proba(X)
    path, seen = tmp_path / "ensemble", []

    def stop(report):
        seen.append((report["member"], report["epoch"]))
        if seen[-1] == (2, 3):
            raise KeyboardInterrupt

    again = DeepEnsemble(TorchClassifier(MLP((8,)), QUICK), n_members=3)
    with pytest.raises(KeyboardInterrupt):
        again.fit(X, y, checkpoint=path, progress=stop)
    assert not hasattr(again, "members_")
    seen.clear()
    again.fit(X, y, checkpoint=path, progress=stop)
    assert seen == [(2, 4), (2, 5), *((3, epoch) for epoch in range(1, 6))]
    np.testing.assert_array_equal(again.predict_proba(X), whole)


def test_progress_tells_the_time_that_all_members_need(data):
    X, y = data
    reports = []
    ensemble = DeepEnsemble(TorchClassifier(MLP((8,)), QUICK), n_members=2)
    ensemble.fit(X, y, progress=reports.append)
    assert [report["members"] for report in reports] == [2] * 10
    assert reports[4]["seconds_left"] == pytest.approx(5 * reports[4]["seconds"])
    assert reports[-1]["seconds_left"] == 0
    # others have nothing to report
    trees = DeepEnsemble(ExtraTreesClassifier(2), n_members=2)
    trees.fit(X, y, checkpoint="nowhere/x", progress=reports.append)
    assert len(reports) == 10


def test_a_bootstrap_draws_rows_for_each_member_and_keeps_every_class():
    """A class of two rows is in every member, and members differ without any seed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(np.isin(np.arange(60), [7, 8]), "rare", np.where(X[:, 0] > 0, "a", "b"))
    model = DeepEnsemble(GaussianNB(), n_members=40, bootstrap=True).fit(X, y)
    assert all(set(member.classes_) == {"a", "b", "rare"} for member in model.members_)
    counts = np.array([member.class_count_ for member in model.members_])
    np.testing.assert_array_equal(counts.sum(axis=1), 60)
    # Sums of 40 x 57 draws, each of a row with the probability 1/60: 5 standard deviations.
    share = (y == "a").mean()
    drawn = counts[:, 0] - 1
    assert abs(drawn.mean() - 57 * share) < 5 * np.sqrt(57 * share * (1 - share) / 40)
    assert len(np.unique(counts, axis=0)) > 5
    assert model.sample_proba(X).std(axis=0).max() > 0.01


@pytest.fixture(scope="module")
def small_images():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return np.clip(rng.uniform(size=(3, 16))[y] + rng.normal(scale=0.1, size=(60, 16)), 0, 1), y


@pytest.fixture(scope="module")
def fitted(small_images):
    return MCDropout(MLP((20, 12), dropout=0.4), QUICK, precision="float64").fit(*small_images)


def test_mean_and_mutual_information_of_the_samples(fitted, small_images):
    P = fitted.sample_proba(small_images[0])
    assert P.shape == (50, 60, 3)
    np.testing.assert_allclose(fitted.predict_proba(small_images[0]), P.mean(axis=0), rtol=1e-12)

    def entropy(p):
        return -(p * np.log(p)).sum(axis=-1)

    naive = entropy(P.mean(axis=0)) - entropy(P).mean(axis=0)
    np.testing.assert_allclose(fitted.uncertainty(small_images[0]), naive, atol=1e-12)
    total = fitted.uncertainty(small_images[0], kind="entropy")
    np.testing.assert_allclose(total, entropy(P.mean(axis=0)), rtol=1e-10)
    largest = fitted.uncertainty(small_images[0], kind="max_prob")
    np.testing.assert_allclose(largest, 1 - P.mean(axis=0).max(axis=1), atol=1e-12)
    assert (fitted.uncertainty(small_images[0]) > 1e-4).all()


def test_a_sample_is_the_network_without_some_units(fitted, small_images):
    """Independent of the code: solve for the units that a pass has kept, and compare all rows."""
    first, second, last = (m for m in fitted.module_.modules() if isinstance(m, nn.Linear))
    generator = torch.Generator().manual_seed(fitted.sample_seeds_[7])
    keep = [torch.rand(1, n, generator=generator).numpy() >= 0.4 for n in (20, 12)]
    weights = [(m.weight.detach().numpy(), m.bias.detach().numpy()) for m in (first, second, last)]
    h = small_images[0]
    for (W, b), kept in zip(weights, [*keep, None], strict=True):
        h = h @ W.T + b
        if kept is not None:
            h = np.maximum(h, 0) * kept / 0.6
    np.testing.assert_allclose(
        fitted.sample_proba(small_images[0])[7], softmax(h, axis=1), rtol=1e-9
    )


def test_channels_are_dropped_whole():
    body = nn.Sequential(nn.Dropout2d(0.5), nn.Flatten())
    network = Network((6, 2, 2), body, nn.Identity(), 24).eval()
    outputs = sample_outputs(network, torch.ones(2, 24), [1, 2, 3]).reshape(3, 2, 6, 4)
    assert (outputs == outputs[..., :1]).all()
    assert 0 < (outputs == 0).float().mean() < 1


class Mirrored(Network):
    """Averages over both directions of a row, around a body with dropout."""

    def features(self, X):
        return (super().features(X) + super().features(X.flip(1))) / 2


def test_features_of_a_body_with_dropout_are_those_of_the_network():
    torch.manual_seed(0)
    body = nn.Sequential(nn.Flatten(), nn.Linear(6, 8), nn.Dropout(0.5), nn.ReLU())
    network = Mirrored((1, 1, 6), body, nn.Linear(8, 2), 8).eval()
    X = torch.rand(5, 6)
    generator = torch.Generator().manual_seed(3)
    kept = [torch.rand(1, 8, generator=generator) >= 0.5 for _ in range(2)]
    halves = [
        (body[1](rows) * keep * 2).relu() for rows, keep in zip((X, X.flip(1)), kept, strict=True)
    ]
    expected = network.head((halves[0] + halves[1]) / 2)
    torch.testing.assert_close(sample_outputs(network, X, [3])[0], expected)


def test_the_network_itself_is_left_alone(fitted, small_images):
    kinds = [type(m) for m in fitted.module_.modules()]
    before = {k: v.clone() for k, v in fitted.module_.state_dict().items()}
    logits = fitted.logits(small_images[0])
    fitted.uncertainty(small_images[0])
    assert [type(m) for m in fitted.module_.modules()] == kinds
    assert not fitted.module_.training
    for name, value in fitted.module_.state_dict().items():
        assert torch.equal(value, before[name])
    np.testing.assert_array_equal(fitted.logits(small_images[0]), logits)


def test_batch_normalisation_stays_in_evaluation(small_images):
    """Statistics of the batch would make a row's answer depend on the other rows."""
    mc = MCDropout(FastCNN(width=4, dropout=0.3), QUICK, precision="float64").fit(*small_images)
    whole = mc.uncertainty(small_images[0])
    alone = [mc.uncertainty(row[None])[0] for row in small_images[0][:5]]
    np.testing.assert_allclose(alone, whole[:5], rtol=1e-9)
    np.testing.assert_allclose(mc.uncertainty(small_images[0][::-1]), whole[::-1], rtol=1e-9)


def test_chunks_see_the_same_networks(fitted, small_images):
    """1200 rows are more than two chunks: copies of a row get the same answer in all of them."""
    X = np.tile(small_images[0], (20, 1))
    tiles = fitted.sample_proba(X).reshape(50, 20, 60, 3)
    np.testing.assert_allclose(tiles, np.broadcast_to(tiles[:, :1], tiles.shape), rtol=1e-10)


def test_the_passes_of_dropout_share_the_layers_before_it():
    backbone = MLP((12, 8, 6), dropout=0.5)
    X = np.random.default_rng(0).normal(size=(20, 54))
    model = MCDropout(backbone, Training(1, 10, n_jobs=1), n_samples=7, precision="float64")
    model.fit(X, np.arange(20) % 2)
    calls = []
    model.module_.body[1].register_forward_hook(lambda *given: calls.append(1))
    samples = model.sample_proba(X)
    assert len(calls) == 1
    # the reference: the whole network, once for each pattern
    for seed, sample in zip(model.sample_seeds_, samples, strict=True):
        generator = torch.Generator()
        whole = _with_dropout(model.module_, generator)
        generator.manual_seed(seed)
        logits = whole(torch.from_numpy(X)).detach().numpy()
        np.testing.assert_allclose(sample, softmax(logits, axis=1), rtol=1e-12)
