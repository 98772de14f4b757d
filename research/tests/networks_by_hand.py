"""Networks built from a seed, and their sizes and work, counted layer by layer."""

import torch
from scipy.stats import chisquare
from torch import nn

GREY, COLOUR = (1, 28, 28), (3, 32, 32)


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def build(backbone, shape=GREY, k=10, seed=0):
    return backbone.build(shape, k, generator(seed))


def count(network):
    return sum(p.numel() for p in network.parameters())


def layers_of(network, kinds=(nn.Conv2d, nn.Linear)):
    return [layer for layer in network.modules() if isinstance(layer, kinds)]


def output_shapes(layers, network, X):
    """Shapes of the outputs of some layers for one input, in the order that they ran."""
    shapes, handles = [], []
    for layer in layers:
        note = lambda _, __, out: shapes.append(tuple(out.shape[1:]))  # noqa: E731
        handles.append(layer.register_forward_hook(note))
    network(X)
    for handle in handles:
        handle.remove()
    return shapes


def multiplications(network, d):
    """Counted layer by layer for one input of d numbers, without computing anything."""
    network, total = network.to("meta").eval(), []

    def note(layer, _, out):
        places = out[0].numel() if isinstance(layer, nn.Conv2d) else out.shape[1]
        total.append(layer.weight[0].numel() * places)

    for layer in layers_of(network):
        layer.register_forward_hook(note)
    network(torch.zeros(1, d, device="meta"))
    return sum(total)


def equally_often(counts, kinds):
    """Return whether all kinds came, none too often by a chi-squared test at one in a thousand."""
    counts = list(counts)
    return len(counts) == kinds and chisquare(counts).pvalue > 1e-3
