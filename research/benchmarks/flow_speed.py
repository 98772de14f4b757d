"""Training speed of masked autoregressive flows against nflows and zuko, in one run.

nflows is a peer to measure against, never a dependency:

    pip install --no-deps --target /tmp/peer nflows
    PYTHONPATH=/tmp/peer python benchmarks/flow_speed.py
"""

from collections.abc import Callable
from importlib.metadata import version

import harness
import torch
import zuko
from harness import paired_seconds
from nflows.flows.autoregressive import MaskedAutoregressiveFlow
from torch import Tensor, nn

from dipedl.networks import MaskedAutoregressive

FEATURES = 784
REPEATS, THREADS = 15, torch.get_num_threads()
PEERS = {name: version(name) for name in ("nflows", "zuko")}
#: The same number of layers of the same widths in all libraries.
PLAIN = {"transforms": 5, "hidden": (512, 512), "batch": 128}
RESIDUAL = {"transforms": 3, "hidden": (512,) * 4, "batch": 128}


def ours(config: dict, residual: bool) -> nn.Module:
    maf = MaskedAutoregressive(
        config["transforms"],
        config["hidden"],
        residual=residual,
        batch_norm=residual,
        between_batch_norm=residual,
    )
    return maf.build(FEATURES, torch.Generator().manual_seed(0))


def by_nflows(config: dict, residual: bool) -> nn.Module:
    # Its plain network has one layer more than blocks, its residual one begins with a layer too.
    return MaskedAutoregressiveFlow(
        FEATURES,
        config["hidden"][0],
        config["transforms"],
        len(config["hidden"]) - (0 if residual else 1),
        use_residual_blocks=residual,
        batch_norm_within_layers=residual,
        batch_norm_between_layers=residual,
    )


def log_prob(flow: nn.Module) -> Callable[[Tensor], Tensor]:
    return flow.log_prob if hasattr(flow, "log_prob") else lambda x: flow().log_prob(x)


def weights(flow: nn.Module) -> int:
    """Entries of all masked matrices, stored or not."""
    layers = [m for m in flow.modules() if type(m).__name__ == "MaskedLinear"]
    return sum(m.in_features * m.out_features for m in layers)


def step(flow: nn.Module, batch: int) -> Callable[[], None]:
    """One gradient step of Adam, the same fused one for all."""
    score = log_prob(flow.train())
    optimizer = torch.optim.Adam(flow.parameters(), 1e-4, fused=True)
    rows = torch.randn(batch, FEATURES, generator=torch.Generator().manual_seed(0))

    def call() -> None:
        optimizer.zero_grad()
        (-score(rows).mean()).backward()
        optimizer.step()

    return call


def compare(name: str, config: dict, flows: dict[str, nn.Module]) -> dict[str, float]:
    sizes = {key: weights(flow) for key, flow in flows.items()}
    if len(set(sizes.values())) > 1:
        raise ValueError(f"the architectures differ: {sizes}")
    calls = {key: step(flow, config["batch"]) for key, flow in flows.items()}
    times = paired_seconds(calls, REPEATS)
    peers = {key: value for key, value in times.items() if key != "ours"}
    return {f"{name}_step_s": times["ours"], f"{name}_weights": sizes["ours"]} | {
        f"{name}_speedup_over_{key}": value / times["ours"] for key, value in peers.items()
    }


def measure() -> harness.Values:
    torch.manual_seed(0)
    plain = {
        "ours": ours(PLAIN, False),
        "nflows": by_nflows(PLAIN, False),
        "zuko": zuko.flows.MAF(
            FEATURES, transforms=PLAIN["transforms"], hidden_features=PLAIN["hidden"]
        ),
    }
    residual = {"ours": ours(RESIDUAL, True), "nflows": by_nflows(RESIDUAL, True)}
    values = compare("plain", PLAIN, plain) | compare("residual", RESIDUAL, residual)
    return {name: round(value, 3) for name, value in values.items()}


if __name__ == "__main__":
    harness.main(__file__, measure)
