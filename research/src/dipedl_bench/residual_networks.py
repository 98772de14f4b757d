"""Residual networks of 6n + 2 layers for images of 32 x 32 pixels, as trained by many on CIFAR."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

__all__ = ["ResNet"]


class _Block(nn.Module):
    """Two convolutions and a shortcut without weights: every second pixel, and empty channels."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.stride, self.more = stride, (after - before) // 2

    def forward(self, maps: Tensor) -> Tensor:
        shortcut = pad(
            maps[..., :: self.stride, :: self.stride], (0, 0, 0, 0, self.more, self.more)
        )
        residual = torch.relu(self.bn1(self.conv1(maps)))
        return torch.relu(self.bn2(self.conv2(residual)) + shortcut)


class ResNet(nn.Module):
    """The residual network for CIFAR of its paper, with shortcuts of type A [1]_.

    Three groups of blocks with 16, 32 and 64 channels, on whole, half and quarter resolution; the
    64 features are means over the pixels. Its weights have the names that are usual for it, so that
    the networks of [2]_ can be loaded.

    Parameters
    ----------
    depth : int
        Layers: 20, 32, 44, 56, 110 or another number 6n + 2.
    n_classes : int, default=10
        Number of outputs.

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, "Deep residual learning for image recognition", CVPR
       2016, section 4.2.
    .. [2] Y. Idelbayev, "Proper ResNet implementation for CIFAR10/CIFAR100 in PyTorch",
       https://github.com/akamaster/pytorch_resnet_cifar10, BSD 2-clause.

    Examples
    --------
    >>> import torch
    >>> from dipedl_bench.residual_networks import ResNet
    >>> ResNet(20)(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 10])
    """

    def __init__(self, depth: int, n_classes: int = 10) -> None:
        super().__init__()
        if depth < 8 or depth % 6 != 2:
            raise ValueError(f"depth must be 6n + 2, such as 20 or 56, got {depth}")
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        n = (depth - 2) // 6
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(
                _Block(before, after, stride), *(_Block(after, after, 1) for _ in range(n - 1))
            )
            for before, after, stride in ((16, 16, 1), (16, 32, 2), (32, 64, 2))
        )
        self.linear = nn.Linear(64, n_classes)

    def forward(self, images: Tensor) -> Tensor:
        """Return outputs (n, n_classes) for images (n, 3, height, width)."""
        maps = torch.relu(self.bn1(self.conv1(images)))
        for group in (self.layer1, self.layer2, self.layer3):
            maps = group(maps)
        outputs: Tensor = self.linear(maps.mean(dim=(2, 3)))
        return outputs
