"""A small network whose layers are divided by their spectral norms, for tests."""

from dataclasses import dataclass

import torch
from torch import nn

from dipedl.networks import FastCNN


@dataclass(frozen=True)
class Normed(FastCNN):
    """`FastCNN` with the parametrization of PyTorch, drawn from the generator alone."""

    def build(self, input_shape, n_outputs, generator):
        network = super().build(input_shape, n_outputs, generator)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(generator.initial_seed())
            for layer in list(network.modules()):
                if isinstance(layer, nn.Conv2d | nn.Linear):
                    nn.utils.parametrizations.spectral_norm(layer)
        return network
