"""Which networks can be wrapped, and which of their modules look at the mode."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.dropout import _DropoutNd

#: The modules of torch.nn that look at ``self.training``.
_MODAL = (_NormBase, _DropoutNd, nn.RReLU, nn.MultiheadAttention, nn.RNNBase)


def modal_modules(network: nn.Module) -> list[nn.Module]:
    """Modules that behave otherwise in training mode, or may: those that torch.nn did not write."""
    return [
        module
        for module in network.modules()
        if isinstance(module, _MODAL) or not type(module).__module__.startswith("torch.nn.modules")
    ]


def check_eval(modules: Sequence[nn.Module]) -> None:
    """Raise ValueError if one of these modules is in training mode."""
    for module in modules:
        if module.training:
            raise ValueError(
                f"network must be in eval mode, but its {type(module).__name__} is in training "
                "mode, in which batch norm and dropout answer at random; call network.eval() first"
            )


def checked_network(network: Any) -> nn.Module:
    """The network, if it is a module that was not compiled."""
    if not isinstance(network, nn.Module):
        raise TypeError(f"network must be a torch.nn.Module, got {type(network).__name__}")
    if hasattr(network, "_orig_mod"):
        raise TypeError(
            "network was compiled, and its layers can no longer be captured; wrap the network "
            "itself and compile the whole: torch.compile(DIPModule(network).fit_density(loader))"
        )
    return network
