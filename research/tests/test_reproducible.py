"""The same training with other instructions and threads: near in float32, not in bfloat16."""

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")

#: Largest difference of a probability that float32 may make; 0.002 was measured, 0.03 in bfloat16.
BOUND = 0.01
#: Trains a small network in float32 and in bfloat16; arguments: threads, file of probabilities.
PROGRAM = """
import sys
import numpy as np
from dipedl.networks import TorchClassifier, Training
from dipedl_bench.paper_networks import BranchCNN

y = np.arange(192) % 2
X = np.random.default_rng(0).normal(size=(192, 160)) + 0.3 * np.outer(y, np.sin(np.arange(160) / 9))
for amp in (False, True):
    training = Training(
        4, 32, "adamw", 1e-2, weight_decay=0.05, schedule="one-cycle",
        amp=amp, n_jobs=int(sys.argv[1]), device="cpu",
    )
    network = TorchClassifier(BranchCNN(channels=8, dropout=0.5), training, random_state=0)
    np.save(f"{sys.argv[2]}{amp}.npy", network.fit(X[:128], y[:128]).predict_proba(X[128:]))
"""
OLD_CPU = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41"}
OLD_CPU |= {"MKL_CBWR": "COMPATIBLE"}
RUNS = {"here": (1, {}), "old": (1, OLD_CPU), "threads": (2, {"OMP_WAIT_POLICY": "PASSIVE"})}


@pytest.mark.slow
def test_float32_hardly_depends_on_the_machine_and_bfloat16_does(tmp_path):
    """Instruction sets and threads stand for kinds of machine; each run is a process of its own."""
    if torch.backends.cpu.get_cpu_capability() == "DEFAULT":
        pytest.skip("this CPU has one instruction set only")
    running = [
        subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(threads), tmp_path / name],
            env={**os.environ, "OMP_NUM_THREADS": str(threads), **settings},
        )
        for name, (threads, settings) in RUNS.items()
    ]
    assert [process.wait(timeout=300) for process in running] == [0, 0, 0]
    apart = {
        amp: [
            np.abs(np.load(tmp_path / f"{name}{amp}.npy") - np.load(tmp_path / f"here{amp}.npy"))
            for name in ("old", "threads")
        ]
        for amp in (False, True)
    }
    assert max(difference.max() for difference in apart[False]) < BOUND
    assert max(difference.max() for difference in apart[True]) > BOUND
