"""
A trained network that knows what it has not seen
=================================================

``DIPModule`` takes a trained PyTorch network as it is. One pass over its training data adds a
density of its features. Here a small network reads digits, and then gets Japanese characters and
drawings of other alphabets.
"""

# %%
# 1,500 MNIST digits, and characters of K-MNIST and Omniglot, come with the package. The network
# stands for yours: two convolutions, a few passes over the data. 300 digits are kept from it to
# calibrate.

import numpy as np
import torch
from torch import nn

from dipedl import DIPModule, datasets


def as_images(rows: np.ndarray) -> torch.Tensor:
    """Rows (n, 784) as a tensor (n, 1, 28, 28)."""
    return torch.tensor(rows).reshape(-1, 1, 28, 28)


data = datasets.load_mini_mnist()
images, labels = as_images(data.X_train), torch.tensor(data.y_train)
held_out, train = [(images[:300], labels[:300])], [(images[300:], labels[300:])]

torch.manual_seed(0)
network = nn.Sequential(
    nn.Conv2d(1, 8, 5, stride=2),
    nn.ReLU(),
    nn.Conv2d(8, 16, 5, stride=2),
    nn.ReLU(),
    nn.Flatten(),
    nn.Linear(16 * 16, 64),
    nn.ReLU(),
    nn.Linear(64, 10),
)
optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
for _ in range(20):
    for rows in torch.randperm(1200).split(100):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(train[0][0][rows]), train[0][1][rows]).backward()
        optimizer.step()

# %%
# Nothing is trained here: features and their density, in one pass.

model = DIPModule(network.eval()).fit_density(train, calibration=held_out)

# %%
# The network is asked about digits and about what is no digit, alone and with the density.

from dipedl.metrics import ood_auroc

asked = {
    "digits": data.X_test,
    "Japanese characters": data.ood["kmnist"],
    "other alphabets": data.ood["omniglot"],
}
doubt, vacuity = {}, {}
with torch.no_grad():
    for name, rows in asked.items():
        x = as_images(rows)
        doubt[name] = 1 - network(x).softmax(dim=1).amax(dim=1).numpy()
        vacuity[name] = model(x).vacuity.numpy()
        flagged = (model.predict_ood(x) == -1).float().mean()
        sure = np.mean(doubt[name] < 0.1)
        print(f"{name:20} the network alone is over 90 % sure of {sure:.0%}; {flagged:.0%} flagged")

# %%
# The AUROC is the chance that a character ranks as less sure than a digit.

areas = {
    kind: [ood_auroc(scores["digits"], scores[name]) for name in list(asked)[1:]]
    for kind, scores in (("alone", doubt), ("with the density", vacuity))
}
for kind, (japanese, others) in areas.items():
    print(f"AUROC of the network {kind}: {japanese:.3f} and {others:.3f}")

# %%
# Left: how unsure the network says it is. Right: vacuity, with the density of its features. Both
# axes are stretched at their ends.

import matplotlib.pyplot as plt

from dipedl.plots import VacuityHistogramDisplay

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
VacuityHistogramDisplay(doubt).plot(left, bins=24, legend=False)
left.set(title="The network alone", xlabel="1 - largest probability")
VacuityHistogramDisplay(vacuity).plot(right, bins=24, legend=False)
right.set(title="With the density of its features", xlabel="vacuity")
fig.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
plt.show()
