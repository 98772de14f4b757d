"""Settings and data that must be equal to resume a run from a checkpoint."""

from __future__ import annotations

import hashlib
import re
from dataclasses import fields
from typing import Any

from torch import Tensor

from ._loop import Run

#: Settings that may differ between machines: they do not change the result.
_FREE = {"n_jobs", "device", "compile"}


def fingerprint(run: Run, seed: int) -> dict[str, str]:
    """Settings and data that must be equal to resume a run, as text, by name."""
    settings = {
        f"settings.{f.name}": _described(getattr(run.settings, f.name))
        for f in fields(run.settings)
        if f.name not in _FREE
    }
    shapes = {
        f"weights of {name}": str(tuple(value.shape))
        for name, value in run.module.state_dict().items()
    }
    return {
        **shapes,
        "the layers": _described(run.module),
        **settings,
        "the loss": _described(run.loss),
        "the score": _described(run.score),
        "the device": run.device.type,
        "seed": str(seed),
        "data": _digest(run.data),
        "validation": "None" if run.validation is None else _digest(run.validation),
    }


def _described(thing: Any) -> str:
    """Its repr without addresses and settings that may differ between two runs."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr(thing))
    return re.sub(rf"({'|'.join(sorted(_FREE))})='?[\w:]+'?(, )?", "", text)


def _digest(data: tuple[Tensor, ...]) -> str:
    digest = hashlib.sha256()
    for part in data:
        digest.update(part.detach().contiguous().cpu().numpy().data)
    shapes = " ".join(f"{tuple(part.shape)} {part.dtype}" for part in data)
    return f"{shapes} sha256:{digest.hexdigest()[:16]}"
