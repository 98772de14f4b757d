"""How much of a device the training loop uses: sustained TFLOP/s of whole epochs of `train`.

On a GPU: WRN-28-10 with spectral norm, VGG-16 and WhitenedCNN, in bfloat16, compiled and not, with
the paper's augmentation; on a CPU the same networks in small, which proves that it runs and says
nothing about a GPU:

    python benchmarks/train_speed.py

A step counts as three forward passes of multiply-accumulates, two operations each; augmentation,
normalisation, spectral norm and the optimiser are work that is not counted. The first epoch, which
compiles and picks kernels, is not timed; "first_epoch_s" says what it costs.
"""

import argparse
import statistics
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import receipt
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from dipedl.networks import VGG16, CropFlipRotate, Training, WhitenedCNN, WideResNet, train

IMAGE, CLASSES = (3, 32, 32), 10
#: The paper's training of WRN-28-10, and what it should take at 200 TFLOP/s: 12 minutes.
EPOCHS, ROWS = 100, 40_000
TRAINING = Training(
    optimizer="sgd",
    learning_rate=0.1,
    weight_decay=5e-4,
    schedule="cosine",
    augment=CropFlipRotate(IMAGE),
)


@dataclass(frozen=True)
class Case:
    """What is trained, on `steps` batches an epoch."""

    backbone: Any
    batch: int
    steps: int
    compile: bool


GPU = {
    f"{name}, batch {batch}, {'compiled' if compiled else 'plain'}": Case(
        backbone, batch, steps * 512 // batch, compiled
    )
    for name, backbone, steps in (
        ("WRN-28-10", WideResNet(spectral_norm=True), 40),
        ("VGG-16", VGG16(), 80),
        ("WhitenedCNN", WhitenedCNN(), 80),
    )
    for batch in ((128, 512) if name == "WRN-28-10" else (512,))
    for compiled in (False, True)
}
TINY = {
    "WRN-10-1, batch 16, plain": Case(WideResNet(10, 1, spectral_norm=True), 16, 2, False),
    "VGG-16 of width 4, batch 16, plain": Case(VGG16(width=4), 16, 2, False),
    "WhitenedCNN(8, 8), batch 16, plain": Case(WhitenedCNN(8, 8), 16, 2, False),
}


def forward_macs(backbone: Any) -> float:
    """Multiply-accumulates of one image; counted without computing any."""
    if getattr(backbone, "spectral_norm", False):
        backbone = replace(backbone, spectral_norm=False)
    network = backbone.build(IMAGE, CLASSES, torch.Generator().manual_seed(0)).to("meta").eval()
    with FlopCounterMode(display=False) as counter:
        network(torch.zeros(1, 3072, device="meta"))
    return counter.get_total_flops() / 2


def loss(outputs: Tensor, targets: Tensor, *, epoch: int) -> Tensor:
    return cross_entropy(outputs, targets)


def measure(case: Case, repeats: int, gpu: bool) -> dict[str, float]:
    """Train `repeats` timed epochs on random images, after one that is not timed."""
    n = case.batch * case.steps
    generator = torch.Generator().manual_seed(0)
    data = (
        torch.rand(n, 3072, generator=generator),
        torch.randint(CLASSES, (n,), generator=generator),
    )
    network = case.backbone.build(IMAGE, CLASSES, generator)
    settings = replace(
        TRAINING, epochs=repeats + 1, batch_size=case.batch, amp=gpu, compile=case.compile
    )
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    first, *seconds = train(network, loss, data, settings, seed=0).seconds
    rows_per_second = n / statistics.median(seconds)
    macs = forward_macs(case.backbone)
    return {
        "tflop_per_s": 6 * macs * rows_per_second / 1e12,
        "rows_per_second": rows_per_second,
        "first_epoch_s": first,
        "minutes_of_100_epochs_of_40000": EPOCHS * ROWS / rows_per_second / 60,
        "pflop_of_100_epochs_of_40000": 6 * macs * EPOCHS * ROWS / 1e15,
        "forward_gmac": macs / 1e9,
        "peak_gpu_gib": torch.cuda.max_memory_allocated() / 2**30 if gpu else 0.0,
    }


def row(values: Mapping[str, float]) -> dict[str, float]:
    return {name: float(f"{value:.4g}") for name, value in values.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="timed epochs")
    parser.add_argument("--only", default="", help="cases whose name holds this text")
    options = parser.parse_args()
    gpu, start = torch.cuda.is_available(), time.perf_counter()
    cases = {name: c for name, c in (GPU if gpu else TINY).items() if options.only in name}
    values = {}
    for name, case in cases.items():
        values[name] = row(measure(case, options.repeats, gpu))
        print(f"{name}: {values[name]}", flush=True)
    where = torch.cuda.get_device_name() if gpu else "cpu"
    config = {
        "cases": {name: repr(case) for name, case in cases.items()},
        "repeats": options.repeats,
        "warmup": 1,
        "amp": gpu,
        "torch_device": where,
        "training": repr(TRAINING),
    }
    # a run on a CPU is a proof that it works, and no receipt
    if gpu:
        receipt.write("train_speed", config, values, time.perf_counter() - start)


if __name__ == "__main__":
    main()
