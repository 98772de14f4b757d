"""A suite that runs in seconds: small parts, a few rows of the bundled images."""

from dipedl_bench.running.training import train_part
from dipedl_bench.spec.plan import Cell


def train(store, part, seed, *options):
    """Train a part without the rest of its cell."""
    train_part(Cell(seed, ({},), (part,), 0), part, store, *options)


TINY = """
[suite]
name = "tiny"
title = "Tiny"
ood = ["kmnist"]
seeds = [1, 2]

[profiles.smoke]
dataset = "mini-mnist"
limit = { train = 200, validation = 60, test = 80, ood = 50 }
resamples = 0

[classifiers.net]
estimator = "TorchClassifier"
backbone = { name = "MLP", hidden = [16] }
training = { epochs = 2, batch_size = 32, n_jobs = 1 }

[densities.gaussian]
estimator = "GaussianDensity"

[densities.classes]
estimator = "GDADensity"
features = "network"

[methods.dip-edl]
title = "DIP-EDL"
estimator = "DIPClassifier"
calibrator = "passthrough"
normalizer = { name = "ZScore" }
classifier = "net"
density = "gaussian"
kinds = ["log_density"]

[methods.dip-edl-features]
title = "DIP-EDL on features"
estimator = "DIPClassifier"
calibrator = "passthrough"
normalizer = { name = "ZScore" }
classifier = "net"
density = "classes"
statistics = "validation"
gamma = 2.0

[methods.energy]
title = "Energy"
estimator = "Energy"
classifier = "net"

[methods.edl]
title = "EDL"
estimator = "EDL"
backbone = { name = "MLP", hidden = [16] }
training = { epochs = 2, batch_size = 32, n_jobs = 1 }
"""
