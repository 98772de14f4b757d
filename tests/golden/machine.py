"""What the last bits of a fit depend on besides the code."""

import platform
from importlib.metadata import version

import threadpoolctl

PACKAGES = ("numpy", "scipy", "scikit-learn", "torch", "onnxruntime")


def versions():
    """Versions of the numerical packages."""
    return [f"{name} {version(name)}" for name in PACKAGES]


def kernels():
    """The processor, and the kernels that BLAS has chosen for it."""
    chosen = {str(pool.get("architecture")) for pool in threadpoolctl.threadpool_info()}
    return [platform.machine(), *sorted(chosen - {"None"})]
