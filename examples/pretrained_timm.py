"""A density on the features of a timm model, with random weights and random images.

Run: python examples/pretrained_timm.py
"""

import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

from dipedl.pretrained import ClassGaussians, DIPModule

N_CLASSES = 3


def main() -> None:
    try:
        import timm
    except (
        ImportError,
        RuntimeError,
    ) as error:  # a torchvision for another torch raises the latter
        print(f"timm cannot be imported here ({error}); nothing to show")
        sys.exit(0)

    torch.manual_seed(0)
    network = timm.create_model("resnet10t", pretrained=False, num_classes=N_CLASSES).eval()
    labels = torch.arange(240) % N_CLASSES
    images = 0.3 * torch.randn(240, 3, 64, 64) + (labels - 1.0)[:, None, None, None]
    loader = DataLoader(TensorDataset(images, labels), batch_size=30)

    # fewer images than the 512 features: a factor of low rank for each class
    model = DIPModule(network, density=ClassGaussians("low-rank", rank=8)).fit_density(loader)
    print(model.describe().splitlines()[0])
    with torch.no_grad():
        answer = model(torch.cat([images[:3], 10 * torch.randn(3, 3, 64, 64)]))
    print("vacuity of three images and of three of noise:", answer.vacuity)


if __name__ == "__main__":
    main()
