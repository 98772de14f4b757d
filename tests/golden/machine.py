"""What the last bits of a fit depend on besides the code."""

import platform
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import threadpoolctl
import torch

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "onnxruntime")


def versions():
    """Versions of the numerical packages; a build, such as torch's ``+cpu``, is no version."""
    return [f"{name} {version(name).partition('+')[0]}" for name in PACKAGES]


def kernels():
    """The processor, and the kernels that BLAS has chosen for it."""
    chosen = {str(pool.get("architecture")) for pool in threadpoolctl.threadpool_info()}
    return [platform.machine(), *sorted(chosen - {"None"})]


def vendor():
    """Who made the processor: in float32 networks round by it, up to 3e-6 of a pseudo-count."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("vendor_id")]
    return (named or [platform.processor()])[0]


@contextmanager
def one_thread():
    """In float32 two threads sum in another order: up to 3e-6 of a log-evidence."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
