"""A density on the features of a ResNet: torchvision's resnet18, or a small one of the same form.

Random weights and random images show the calls. Such a network knows little more than the prior,
so vacuity is high throughout; what was never seen is flagged all the same.
Run: python examples/pretrained_resnet.py
"""

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from dipedl.pretrained import ClassGaussians, DIPModule

N_CLASSES, SIDE = 5, 32


class Block(nn.Module):
    """Two convolutions around a shortcut, named as torchvision names them."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        shortcut = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
        self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        """Maps of images (n, channels, height, width)."""
        y = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        return self.relu(y + self.downsample(x))


class SmallResNet(nn.Module):
    """Three blocks and a linear head."""

    def __init__(self, n_classes: int, width: int = 8) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.layer1 = Block(width, width, stride=1)
        self.layer2 = Block(width, 2 * width, stride=2)
        self.layer3 = Block(2 * width, 4 * width, stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(4 * width, n_classes)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (n, n_classes)."""
        x = self.layer3(self.layer2(self.layer1(self.conv1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet() -> nn.Module:
    try:
        from torchvision.models import resnet18
    except (ImportError, RuntimeError) as error:  # a build for another torch raises the latter
        print(f"torchvision cannot be imported ({error}): a small ResNet instead")
        return SmallResNet(N_CLASSES)
    return resnet18(num_classes=N_CLASSES)


def images(n: int) -> TensorDataset:
    """Noise, brighter in one colour by class."""
    labels = torch.arange(n) % N_CLASSES
    pixels = 0.3 * torch.randn(n, 3, SIDE, SIDE)
    pixels += torch.linspace(-1, 1, N_CLASSES)[labels][:, None, None, None]
    return TensorDataset(pixels, labels)


def main() -> None:
    torch.manual_seed(0)
    network = resnet().to(memory_format=torch.channels_last).eval()
    train, held_out = DataLoader(images(400), batch_size=50), DataLoader(images(100), batch_size=50)

    # the input of the last linear layer is found by itself
    model = DIPModule(network).fit_density(train, calibration=held_out)
    print(model.describe().splitlines()[0])

    # early layers beside it, maps averaged over their pixels: one covariance for all classes
    layers = ["layer2", "layer3" if isinstance(network, SmallResNet) else "layer4"]
    several = DIPModule(network, features=layers, density=ClassGaussians("tied"))
    several.fit_density(train, calibration=held_out)

    seen, strange = images(8).tensors[0], 5 * torch.randn(8, 3, SIDE, SIDE)
    for name, fitted in (("penultimate", model), (" + ".join(layers), several)):
        with torch.no_grad():
            near, far = fitted(seen).vacuity.mean(), fitted(strange).vacuity.mean()
            flagged = (fitted.predict_ood(strange) == -1).float().mean()
        print(
            f"{name}: vacuity {near:.2f} of such images, {far:.2f} of noise, {flagged:.0%} flagged"
        )


if __name__ == "__main__":
    main()
