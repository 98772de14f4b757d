"""Small `DIPModule`s around a network, for forged files."""

import numpy as np
import torch
from torch import nn

from dipedl.evidence import Identity, ZScore
from dipedl.pretrained import ClassGaussians, DIPModule

NAME = "own DIPModule"
_LABELS = np.arange(150) % 3
ROWS = torch.as_tensor(np.random.default_rng(0).normal(size=(150, 4)) + 2 * np.eye(4)[_LABELS])
ROWS = ROWS.float()
_SETTINGS = [
    {},
    {"classes": ["ant", "bee", "cat"], "normalizer": ZScore(), "score": "density"},
    {"features": ["0", "2"], "normalizer": Identity(), "calibrator": "passthrough"},
    {"density": ClassGaussians("tied", class_weights="empirical")},
    {"density": ClassGaussians("diagonal", dtype=torch.float64)},
    {"density": ClassGaussians("low-rank", rank=2)},
]


def network():
    """The network of every such file."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3)).eval()


def kinds():
    """As `forged_models.kinds`."""
    return [(f"{NAME} {i}", _saves(settings), ROWS) for i, settings in enumerate(_SETTINGS)]


def _saves(settings):
    def save(path):
        module = DIPModule(network(), **settings)
        module.fit_density([(ROWS, torch.as_tensor(_LABELS))]).save(path)

    return save


def load(path):
    """The module of a file."""
    return DIPModule.load(path, network())


def change(state, name, tensors, changed):
    """Another tensor in a file: `changed` is a function of an array."""
    kind, shape = state[name]
    array = changed(tensors[name].view(kind).reshape(shape).copy())
    if array.dtype.str[1:] in ("f4", "f8", "i4", "i8", "u1"):
        state[name] = [array.dtype.name, list(array.shape)]
        tensors[name] = np.frombuffer(np.ascontiguousarray(array).tobytes(), np.uint8)
