"""
Three methods on one toy: evidential network, ensemble, density
===============================================================

All three promise to say where nothing is known. An evidential network (EDL) learns that from the
training points alone, an ensemble hopes that its members disagree. A density looks where the points
are. All networks have the same size and see the same points.
"""

# %%
# Two moons, and networks of two hidden layers.

from dipedl import DIPClassifier, datasets
from dipedl.baselines import EDL, DeepEnsemble
from dipedl.density import GaussianMixtureDensity
from dipedl.networks import MLP, TorchClassifier, Training

data = datasets.load_moons(500, noise=0.1, random_state=0)
training = Training(epochs=60, learning_rate=5e-3, device="cpu")
network = TorchClassifier(MLP((32, 32)), training, random_state=0)
mixture = GaussianMixtureDensity(random_state=0)
methods = {
    "EDL": EDL(MLP((32, 32)), training, random_state=0),
    "ensemble of 5": DeepEnsemble(network),
    "DIP-EDL": DIPClassifier(network, mixture, cv=2, random_state=0),
}
for method in methods.values():
    method.fit(data.X_train, data.y_train)

# %%
# All are right between the moons. Far from them, where nothing is known, a confidence of 1/2 would
# be honest.

far = data.ood["far"]
confidence = {
    name: method.predict_proba(far).max(axis=1).mean() for name, method in methods.items()
}
for name, method in methods.items():
    right = (method.predict(data.X_test) == data.y_test).mean()
    print(f"{name:14} accuracy {right:.3f}, mean confidence far away {confidence[name]:.2f}")

# %%
# The entropy of each answer over the plane, dark is sure. EDL and the ensemble extend the boundary
# between the classes as far as one looks, and are sure on either side of it.

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import entropy

from dipedl.plots import EvidenceMapDisplay

across, up = np.linspace(-3, 4, 90), np.linspace(-3, 3.5, 90)
plane = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
fig, axes = plt.subplots(1, 3, figsize=(9.5, 3.4), layout="constrained", sharey=True)
for ax, (name, method) in zip(axes, methods.items(), strict=True):
    values = entropy(method.predict_proba(plane), axis=1).reshape(90, 90)
    shown = EvidenceMapDisplay(values, (-3, 4, -3, 3.5), data.X_train, data.y_train)
    shown.plot(ax, top=np.log(2), colorbar=False)
    ax.set(title=f"{name}\nconfidence far away {confidence[name]:.2f}", xlabel="first input")
axes[0].set_ylabel("second input")
fig.colorbar(axes[0].images[0], ax=axes, shrink=0.8, label="entropy of the answer, nats")
plt.show()
