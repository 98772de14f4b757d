import numpy as np
import pytest

from dipedl.datasets import load_moons
from weekly import sample_of


def nearest(points, arc_points=20_001):
    """Distance from the nearest of many points on the two noise-free moons."""
    t = np.linspace(0, np.pi, arc_points)
    upper = np.column_stack([np.cos(t), np.sin(t)])
    lower = np.column_stack([1 - np.cos(t), 0.5 - np.sin(t)])
    arcs = np.concatenate([upper, lower])
    return np.array([np.hypot(*(arcs - p).T).min() for p in points])


def test_shapes_and_balance():
    data = load_moons(101)
    assert data.X_train.shape == data.X_test.shape == data.ood["far"].shape == (101, 2)
    assert data.X_train.dtype == np.float64 and data.n_classes == 2
    assert np.bincount(data.y_train).tolist() == [50, 51]


def test_same_seed_same_points():
    a, b, c = load_moons(50), load_moons(50, random_state=0), load_moons(50, random_state=1)
    for one, two, other in (
        (a.X_train, b.X_train, c.X_train),
        (a.ood["far"], b.ood["far"], c.ood["far"]),
    ):
        np.testing.assert_array_equal(one, two)
        assert not np.array_equal(one, other)
    assert not np.array_equal(a.X_train, a.X_test)


@pytest.mark.parametrize("noise", sample_of([0.0, 0.1, 0.3], 1))
def test_ood_is_far_and_the_rest_is_near(noise):
    data = load_moons(200, noise=noise)
    gap = max(0.5, 5 * noise)
    far = data.ood["far"]
    assert nearest(far).min() > gap - 1e-6
    assert nearest(data.X_test).max() <= gap
    assert (far >= np.array([-1, -0.5]) - 3 * gap).all() and (
        far <= np.array([2, 1]) + 3 * gap
    ).all()


def test_labels_name_the_moons():
    data = load_moons(100, noise=0.0)
    upper = data.X_train[data.y_train == 0]
    np.testing.assert_allclose(np.hypot(*upper.T), 1)
    assert (upper[:, 1] >= 0).all()
