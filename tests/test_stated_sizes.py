"""Weights and bytes that the pages state, counted."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from dipedl.density import FlowDensity  # noqa: E402
from dipedl.nn import VGG16, BranchCNN, LeNet5, PoolCNN, ResNet18, WideResNet  # noqa: E402
from dipedl.pretrained import ClassGaussians  # noqa: E402
from dipedl.pretrained._decisions.kept_rows import KeptRows  # noqa: E402

DOCS = Path(__file__).parent.parent / "docs"
COLOUR = (3, 32, 32)
#: Form -> numbers that k classes of p features take, but for k means.
NUMBERS = {
    "full": lambda k, p: 0.6 * k * p**2,
    "tied": lambda k, p: p**2 + k * p,
    "diagonal": lambda k, p: 2 * k * p,
    "low-rank": lambda k, p: k * p * (32 + 1),
}
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def row(page, name):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.search(rf'^\| [`"]+{name}[`"]+.*$', text, re.MULTILINE)[0]


def weights(builder, *arguments):
    network = builder.build(*arguments, torch.Generator().manual_seed(0))
    return sum(p.numel() for p in network.parameters())


@pytest.mark.parametrize(
    ("backbone", "shape"),
    [
        (ResNet18(), (1, 28, 28)),
        (PoolCNN(), COLOUR),
        (WideResNet(), COLOUR),
        (VGG16(), COLOUR),
    ],
    ids=lambda x: type(x).__name__,
)
def test_weights_of_a_backbone(backbone, shape):
    """Multiplications are counted in tests/nn/test_cifar_networks.py."""
    stated = f" {weights(backbone, shape, 10) / 1e6:.1f} million weights"
    assert stated in row("explanation/training.md", type(backbone).__name__)


def test_network_of_the_paper_beside_that_of_its_code():
    """On MNIST."""
    code, paper = (weights(backbone, (1, 28, 28), 10) for backbone in (ResNet18(), LeNet5()))
    page = (DOCS / "explanation/paper-and-code.md").read_text(encoding="utf-8")
    assert f"ResNet-18 with spectral normalisation, {code / paper:.0f} times the weights" in page


def test_weights_of_the_network_for_spectra():
    stated = f" {weights(BranchCNN(), (806,), 2):,} weights for 806 numbers"
    assert stated in row("explanation/training.md", "BranchCNN")


def test_weights_of_the_flow_of_the_paper():
    flow = FlowDensity.paper().flow
    one, two = (weights(replace(flow, transforms=1, hidden=(1024,) * n), 784) for n in (1, 2))
    total = flow.transforms * (one + (len(flow.hidden) - 1) * (two - one))
    stated = f"{total / 1e6:.0f} million weights"
    assert stated in (DOCS / "explanation/flows.md").read_text(encoding="utf-8")
    assert stated in FlowDensity.paper.__doc__ and stated in type(flow).paper.__doc__


@pytest.mark.parametrize("form", NUMBERS)
def test_memory_of_gaussians(form):
    cells = row("how-to/pretrained.md", form).strip("| ").split(" | ")[-2:]
    for cell, (k, p) in zip(cells, [(10, 512), (1000, 2048)], strict=True):
        number, unit = cell.split()
        decimals = len(number.partition(".")[2])
        assert f"{4 * NUMBERS[form](k, p) / UNITS[unit]:.{decimals}f}" == number


@pytest.mark.parametrize("form", NUMBERS)
def test_memory_of_gaussians_is_that_of_their_buffers(form):
    k, p = 10, 512
    density = ClassGaussians(form)
    rows = torch.randn(900, p, generator=torch.Generator().manual_seed(0))
    density.update(rows, torch.arange(900) % k, n_classes=k)
    held = sum(b.numel() * b.element_size() for b in density.finish().buffers())
    rest = held - 4 * NUMBERS[form](k, p)
    assert 0 < rest < 4 * (2 * k * p), "at most two vectors of a class beyond what is stated"


def test_memory_of_the_rows_that_a_module_keeps():
    page = (DOCS / "how-to/pretrained.md").read_text(encoding="utf-8")
    m, kept = 5000, {}
    for k in (10, 1000):
        rows = KeptRows()
        one = torch.zeros(m)
        rows.keep(one, one, torch.zeros(m, k), one.numpy(), "given", memorised=False)
        parts = (rows.scores, rows.log_density, rows.logits, rows.labels)
        kept[k] = sum(part.numel() * part.element_size() for part in parts)
    stated = f"for 10 classes {kept[10] / 1e3:.0f} KB, for 1,000 classes {kept[1000] / 1e6:.0f} MB"
    assert stated in page
