"""Device, number formats, threads and random states of PyTorch."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock
from typing import Any

import numpy as np
import torch

__all__ = []

DEVICE_TYPES = ("cpu", "cuda", "mps")
#: The default dtype is one for all threads.
_DEFAULTS = RLock()


def device_type(name: Any) -> str:
    """Return the part before the colon; raise ValueError for an unknown device."""
    kind, _, index = str(name).partition(":")
    if kind == "auto" and not index:
        return kind
    if kind in DEVICE_TYPES and (not index or index.isdigit()):
        return kind
    raise ValueError(
        f"device must be 'auto', 'cpu', 'cuda', 'cuda:0' (and so on) or 'mps', got {name!r}"
    )


def resolve_device(name: str) -> torch.device:
    """Return the device called `name`; "auto" is a CUDA GPU if there is one, else the CPU."""
    kind = device_type(name)
    if kind == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    if kind == "cuda":
        count = torch.cuda.device_count() if torch.cuda.is_available() else 0
        if int(name.partition(":")[2] or 0) >= count:
            have = f"{count} of them" if count else "no CUDA device (or was built without CUDA)"
            raise ValueError(
                f"device={name!r} was asked for, but PyTorch {torch.__version__} sees {have}; "
                "use device='auto' or 'cpu'"
            )
    if kind == "mps" and not torch.backends.mps.is_available():
        raise ValueError("device='mps' was asked for, but there is none here; use device='auto'")
    return torch.device(name)


@contextmanager
def plain_defaults() -> Iterator[None]:
    """Context in which new tensors are float32 and on the CPU, whatever the user's defaults."""
    with _DEFAULTS, torch.device("cpu"):
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            yield
        finally:
            torch.set_default_dtype(before)


@contextmanager
def limit_threads(n_jobs: int | None) -> Iterator[None]:
    """Context in which PyTorch uses `n_jobs` threads; None keeps its setting."""
    before = torch.get_num_threads()
    torch.set_num_threads(before if n_jobs is None else n_jobs)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def tune_kernels(enabled: bool) -> Iterator[None]:
    """Context in which cuDNN tries its kernels and keeps the fastest for each shape."""
    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = before or enabled
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def random_states(device: torch.device) -> dict[str, torch.Tensor]:
    """States of the global generators that a module on `device` draws from (dropout)."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def set_random_states(states: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states["cuda"], device)
    if device.type == "mps":
        torch.mps.set_rng_state(states["mps"])


@contextmanager
def seed_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Context that seeds the global generators of the CPU and of `device`, and restores them."""
    before = random_states(device)
    # not torch.manual_seed: it would also seed every other device, and those are not restored
    torch.default_generator.manual_seed(seed)
    if device.type == "cuda":
        with torch.cuda.device(device):
            torch.cuda.manual_seed(seed)
    if device.type == "mps":
        torch.mps.manual_seed(seed)
    try:
        yield
    finally:
        set_random_states(before, device)


@contextmanager
def memory_errors(rows: int, smaller: str, alone: str) -> Iterator[None]:
    """Turn running out of memory at a batch of `rows` into an error with a remedy.

    That is `smaller`, in which {} stands for half the rows, or `alone` for a single row.
    """
    try:
        yield
    except RuntimeError as error:
        # The error of the CPU's allocator has no type of its own.
        texts = ("can't allocate", "not enough memory")
        cpu = any(text in str(error) for text in texts)
        if not cpu and not isinstance(error, torch.OutOfMemoryError):
            raise
        remedy = smaller.format(rows // 2) if rows > 1 else alone
        raise MemoryError(f"out of memory at a batch of {rows} rows; {remedy}: {error}") from error


def as_tensor(array: np.ndarray) -> torch.Tensor:
    """Return a copy: `torch.from_numpy` needs a writeable array, and a `Dataset` is read-only."""
    return torch.from_numpy(np.array(array, order="C"))
