"""A trained network, one pass over its data, and an honest "I don't know", out to ONNX.

Trains a small CNN on the 1,500 digits inside the package, puts a density on its features, asks it
about K-MNIST and Omniglot drawings, exports one graph and runs it in onnxruntime.
Run: python examples/pretrained_cnn.py [FILE.onnx]
"""

import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import onnxruntime
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from dipedl import datasets
from dipedl.metrics import ood_auroc
from dipedl.pretrained import DIPModule, DirichletOutput

HELD_OUT = 300


@contextmanager
def timed(step: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    print(f"{step:<34s} {time.perf_counter() - start:6.1f} s", flush=True)


def cnn() -> nn.Sequential:
    def block(inputs: int, outputs: int) -> list[nn.Module]:
        convolution = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        return [convolution, nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2)]

    body = [*block(1, 16), *block(16, 32), *block(32, 64), nn.Flatten()]
    return nn.Sequential(*body, nn.Linear(64 * 9, 64), nn.ReLU(), nn.Linear(64, 10))


def train(network: nn.Module, loader: DataLoader, epochs: int = 12) -> None:
    optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
    steps = epochs * len(loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=3e-3, total_steps=steps)
    for _ in range(epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(images), labels).backward()
            optimizer.step()
            schedule.step()


def loaders(data: datasets.Dataset) -> tuple[DataLoader, DataLoader]:
    """Digits to train on, and digits that the network does not see."""
    images, labels = as_images(data.X_train), torch.from_numpy(np.array(data.y_train))
    held_out = TensorDataset(images[:HELD_OUT], labels[:HELD_OUT])
    rest = TensorDataset(images[HELD_OUT:], labels[HELD_OUT:])
    return DataLoader(rest, batch_size=128, shuffle=True), DataLoader(held_out, batch_size=500)


def as_images(X: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(np.array(X)).reshape(-1, 1, 28, 28)


def report(
    answers: dict[str, DirichletOutput], ood: dict[str, torch.Tensor], y: np.ndarray
) -> None:
    correct = answers["test"].mean.argmax(dim=1).numpy() == y
    flagged = {name: float((flags == -1).float().mean()) for name, flags in ood.items()}
    print(f"accuracy {correct.mean():.3f}; flagged {flagged.pop('test'):.1%} of the test digits")
    known = -answers["test"].log_evidence.numpy()
    for name, share in flagged.items():
        area = ood_auroc(known, -answers[name].log_evidence.numpy())
        print(f"{name:<18s} AUROC {area:.3f}, flagged {share:.1%}")


def main(path: Path) -> None:
    torch.manual_seed(0)
    data = datasets.load_mini_mnist()
    loader, held_out = loaders(data)
    asked = {name: as_images(X) for name, X in {"test": data.X_test, **data.ood}.items()}
    network = cnn()
    with timed("train a CNN"):
        train(network, loader)

    with timed("one pass for the density"):
        model = DIPModule(network.eval()).fit_density(loader, calibration=held_out)
    print(model.describe().splitlines()[0])
    with timed("score test and OOD images"), torch.no_grad():
        answers = {name: model(X) for name, X in asked.items()}
        ood = {name: model.predict_ood(X) for name, X in asked.items()}
    report(answers, ood, data.y_test)

    with timed("export one ONNX graph"):
        model.export_onnx(path, asked["test"][:2])
    with timed("run it in onnxruntime"):
        session = onnxruntime.InferenceSession(path)
        runs = {name: session.run(None, {"input": X.numpy()}) for name, X in asked.items()}
    worst = max(abs(runs[name][0] - answers[name].mean.numpy()).max() for name in asked)
    print(f"largest difference of a probability: {worst:.1e}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(folder) / "digits.onnx")
