"""A crossed suite that runs in seconds: small data of scikit-learn, cheap classifiers, methods."""

TINY_CROSSED = """
[suite]
name = "tiny-crossed"
title = "Tiny"
seeds = [1, 2]

[profiles.smoke]
datasets = ["flowers", "wines"]

[profiles.net]
datasets = ["digits"]
seeds = [3]
limit = { train = 200, validation = 60, test = 80, ood = 50 }

[profiles.net.classifiers.net.training]
epochs = 2

[datasets.flowers]
title = "Iris"
loader = "sklearn:iris"
leave_out = 1
ood = ["versicolor"]
classifiers = ["logistic"]

[datasets.wines]
title = "Wine"
loader = "sklearn:wine"
leave_out = 1
ood = ["class_1"]
classifiers = ["logistic", "trees"]
resamples = 40

[datasets.digits]
title = "Digits"
loader = "load_digits"
arguments = { ood_classes = [8] }
ood = ["held_out"]
classifiers = ["net"]

[classifiers.logistic]
title = "logistic regression"
standardise = true
estimator = "LogisticRegression"

[classifiers.trees]
title = "forest"
estimator = "RandomForestClassifier"
n_estimators = 10

[classifiers.net]
title = "network"
frozen = true
estimator = "TorchClassifier"
backbone = { name = "MLP", hidden = [16] }
training = { epochs = 9, batch_size = 32, n_jobs = 1 }

[methods.max-softmax]
title = "max probability"
group = "bare"
estimator = "MaxSoftmax"

[methods.default]
title = "ours"
group = "ours"
estimator = "DIPClassifier"
arguments.density = { name = "GDADensity" }
normalizer = { name = "ZScore" }
kinds = ["total", "log_density"]

[methods.energy]
title = "energy"
group = "baseline"
estimator = "Energy"
may_refuse = true

[methods.temperature]
title = "temperature"
group = "baseline"
estimator = "DIPClassifier"
arguments.density = { name = "GDADensity" }
answers = "classifier_proba"

[methods.chain]
title = "unit length"
group = "candidate"
estimator = "DIPClassifier"
normalizer = { name = "ZScore" }
kinds = ["total"]

[methods.chain.arguments.density]
pipeline = [{ name = "Normalizer" }, { name = "GDADensity", covariance_type = "tied" }]
"""
