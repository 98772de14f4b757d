"""A fitted `DIPModule` as one safetensors file, its settings as JSON beside the tensors."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..calibration.crossfit import IN_SAMPLE
from ..evidence import check_increasing
from ..io.container import ModelFileError, read, versions, write
from ..io.own import ENTRIES, MODULE
from ..io.values import Decoder, Encoder
from ..networks.batches import device_of
from .class_gaussians import SETTINGS, ClassGaussians
from .held_out_rows import HELD_OUT_SHARE

__all__ = []

_TYPE = "DIPModule"
_PACKAGES = ("numpy", "scipy", "scikit-learn", "torch")
#: Parts of a module with a state of their own; that of the network, which is the user's and touched
#: last, is optional in a file.
_PARTS = ("source", "density_", "fusion", "head", "held_out", "network")
_SETTINGS = ("features", "pool", "score", "classes", "_held_out")
_EVIDENCE = (
    "gamma", "max_evidence", "caution", "normalizer", "calibrator", "spread", "false_alarm_rate",
)  # fmt: skip


def write_module(module: Any, path: Path, *, weights: bool) -> None:
    """Write a fitted module, with or without the weights of its network."""
    if module.source.function is not None:
        raise TypeError(
            "features is a function, which no file without pickle can hold; name a module of the "
            "network (features='<module>'), or keep module.state_dict() and build it in code"
        )
    encoder = Encoder()
    settings = {name: encoder.encode(value, name) for name, value in _settings(module).items()}
    if encoder.paths:
        raise TypeError(
            f"{encoder.paths[0]} of the module cannot be saved: a file of a DIPModule holds no "
            "classes of other packages; use numbers, strings and normalisers of dipedl.evidence"
        )
    contents = encoder.contents()
    tensors, state = dict(encoder.tensors), {}
    for part in _PARTS if weights else _PARTS[:-1]:
        for name, tensor in _weights(getattr(module, part)).items():
            tensors[f"{part}/{name}"] = _bytes(tensor)
            state[f"{part}/{name}"] = [_kind(tensor), list(tensor.shape)]
    manifest = {
        "type": _TYPE,
        "versions": versions(*_PACKAGES),
        "classes": [str(name) for name in module.classes_.tolist()],
        "n": module.n_,
        "features": module.source.layers,
        "structure": _structure(module.network),
        "weights": _digest(module.network),
        "state": state,
        **contents,
        "parts": [],
        "settings": settings,
    }
    write(path, manifest, tensors)


def read_module(cls: Any, path: Path, network: nn.Module) -> Any:
    """Return the module in a file, around `network`, if that is the network of the file."""
    manifest, tensors = read(path)
    if manifest.get("type") != _TYPE:
        raise ModelFileError(
            f"{path} holds no DIPModule but {manifest.get('type')}; read it with dipedl.load"
        )
    try:
        decoder = Decoder(manifest, tensors)
        settings = {name: decoder.decode(code) for name, code in manifest["settings"].items()}
        state: dict[str, dict[str, Tensor]] = {part: {} for part in _PARTS}
        for key, (kind, shape) in manifest["state"].items():
            part, _, name = key.partition("/")
            state[part][name] = _tensor(tensors[key], kind, shape)
        structure, weights = dict(manifest["structure"]), manifest["weights"]
    except Exception as error:
        raise ModelFileError(f"{path} holds no valid DIPModule: {error}") from error
    _check_structure(path, structure, network)
    if not state["network"] and weights != _digest(network):
        raise ValueError(
            f"network has other weights than when {path} was saved with weights=False, and its "
            "density knows those alone; load the weights into it first, or save with weights=True"
        )
    try:
        return _build(cls, network, settings, state)
    except Exception as error:
        raise ModelFileError(f"{path} holds no valid DIPModule: {error}") from error


def _settings(module: Any) -> dict[str, Any]:
    density, evidence = module.density_, module.head.settings
    return {
        **{name: getattr(module, name) for name in _SETTINGS},
        **{name: getattr(evidence, name) for name in _EVIDENCE},
        "prior": np.asarray(evidence.prior, dtype=np.float64).tolist(),
        "density": {name: getattr(density, name) for name in SETTINGS}
        | {"dtype": _kind(torch.empty(0, dtype=density.dtype))},
    }


def _build(
    cls: Any, network: nn.Module, settings: dict[str, Any], state: dict[str, dict[str, Tensor]]
) -> Any:
    weights = state.pop("network")
    arrays = {f"{part}/{n}": t.numpy() for part, own in state.items() for n, t in own.items()}
    MODULE.check(SimpleNamespace(**arrays))
    held_out, density = settings.pop("_held_out"), settings.pop("density")
    # The constructor checks the others.
    if held_out not in (HELD_OUT_SHARE, IN_SAMPLE):
        raise ValueError(f"held_out must be {HELD_OUT_SHARE} or {IN_SAMPLE!r}, got {held_out!r}")
    density = ClassGaussians(**density | {"dtype": getattr(torch, density["dtype"])})
    module = cls(network, density=density, **settings)
    module._held_out = held_out
    for part, own in state.items():
        # As they are, even if the module was converted to another type after its fit.
        getattr(module, part).load_state_dict(own, assign=True)
        getattr(module, part).to(device_of(network))
    if weights:
        network.load_state_dict(weights)
    _check_parts(module)
    return module


def _check_parts(module: Any) -> None:
    """Raise unless density, fusion and head fit together, and the layer that they read."""
    density, head = module.density_, module.source.penultimate
    k = density.n_classes_
    with torch.no_grad():
        row = density.origin[None, : density.n_features_]
        score = module.fusion(density(row), row.new_zeros(1, k))
        result = module.head(score, density.origin.new_zeros(1, k))
    if not all(torch.isfinite(part).all() for part in result):
        raise ValueError("it gives no number for the mean of its own rows")
    if len(module.held_out.evidence):
        evidence = module.evidence_
        normalizer = evidence.normalizer_
        ENTRIES[f"evidence.{type(normalizer).__name__}"].check(normalizer)
        check_increasing(normalizer, evidence.held_out_.scores)
        if evidence.calibrator_ is not None:
            ENTRIES["calibration.Temperature"].check(evidence.calibrator_)
    if head is not None and (head.in_features, head.out_features) != (density.n_features_, k):
        raise ValueError(f"its density and classes do not fit the layer {head}")
    if module.classes is not None and len(module.classes) != k:
        raise ValueError(f"it names {len(module.classes)} classes of {k}")


def _check_structure(path: Path, stored: dict[str, str], network: nn.Module) -> None:
    own = _structure(network)
    for name in [*stored, *own]:
        if stored.get(name) != own.get(name):
            raise ValueError(
                f"network does not fit {path}: {name} is {own.get(name, 'absent')} here and "
                f"{stored.get(name, 'absent')} in the file; build it by the code and with the "
                "dtype that it was saved with"
            )


def _structure(network: nn.Module) -> dict[str, str]:
    """Type of each module, and type and shape of each parameter and buffer, by name."""
    modules = {
        f"module {name or 'itself'}": type(module).__name__
        for name, module in network.named_modules()
    }
    return modules | {
        name: f"{_kind(tensor)} {tuple(tensor.shape)}" for name, tensor in _weights(network).items()
    }


def _weights(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, refusing any other state."""
    state = module.state_dict()
    for name, value in state.items():
        if not isinstance(value, Tensor):
            raise TypeError(
                f"network keeps {type(value).__name__} as {name}, which no file without pickle can "
                "hold; keep module.state_dict() with torch.save instead"
            )
    return dict(state)


def _digest(network: nn.Module) -> str:
    digest = sha256()
    for name, tensor in _weights(network).items():
        digest.update(f"{name} {_kind(tensor)} {tuple(tensor.shape)}".encode())
        digest.update(_bytes(tensor).data)
    return digest.hexdigest()


def _kind(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _bytes(tensor: Tensor) -> np.ndarray:
    """The bytes of a tensor: numpy has no bfloat16."""
    return tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()


def _tensor(data: np.ndarray, kind: str, shape: list[int]) -> Tensor:
    dtype = getattr(torch, kind)
    if not isinstance(dtype, torch.dtype):
        raise ValueError(f"{kind!r} is no type of a tensor")
    if not data.size and 0 in shape:
        # No bytes have no stride to view them by.
        return torch.empty(shape, dtype=dtype, device="cpu")
    return torch.from_numpy(data.copy()).view(dtype).reshape(shape)
