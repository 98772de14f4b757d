"""
p-values of known, damaged and unknown inputs
=============================================

``p_value`` says how rare so strange an input is among known ones. For known inputs every value
between 0 and 1 is equally likely, whatever the data and the classifier. What is damaged or unknown
piles up near 0.
"""

# %%
# The digits 0 to 7 of scikit-learn. Damaged digits are test digits with a missing row of pixels, or
# moved by one pixel; the unknown ones are 8 and 9.

import numpy as np
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier, datasets

data = datasets.load_digits()
clf = DIPClassifier(LogisticRegression(max_iter=1000), random_state=0)
clf.fit(data.X_train, data.y_train)

images = data.X_test.reshape(-1, *data.image_shape)
dead = images.copy()
dead[:, 3] = 0
inputs = {
    "known": images,
    "known, a row of pixels missing": dead,
    "known, moved down by a pixel": np.roll(images, 1, axis=1),
    "unknown: 8 and 9": data.ood["held_out"],
}
p = {name: clf.p_value(np.reshape(X, (len(X), -1))) for name, X in inputs.items()}

# %%
# ``predict_ood`` flags inputs with a p-value of at most ``alpha``.

flagged = {name: np.mean(values <= 0.05) for name, values in p.items()}
for name, share in flagged.items():
    print(f"{name:32} flagged at alpha = 0.05: {share:.0%}")

# %%
# The share of inputs that are flagged, for every ``alpha`` at once. Known inputs follow the dotted
# line: no more alarms than asked for.

import matplotlib.pyplot as plt

alpha = np.geomspace(0.002, 1, 300)
fig, ax = plt.subplots(figsize=(7, 4.4), layout="constrained")
colors = ("#0072B2", "#E69F00", "#009E73", "#D55E00")
for (name, values), color, line in zip(p.items(), colors, ("-", "-.", "--", "-"), strict=True):
    share = np.mean(values[:, None] <= alpha, axis=0)
    ax.plot(alpha, share, line, color=color, label=name, linewidth=2)
ax.plot(alpha, alpha, ":", color="0.5", label="as many as asked for")
ax.axvline(0.05, color="0.5", linewidth=0.8)
ax.set(xscale="log", xlabel="alpha: false alarms asked for", ylabel="share of inputs flagged")
ax.set(title="p-values: share of inputs with p at most alpha", xlim=(0.002, 1), ylim=(0, 1.02))
ax.set_xticks([0.002, 0.01, 0.05, 0.2, 1], ["0.2 %", "1 %", "5 %", "20 %", "100 %"])
ax.legend(loc="upper left", fontsize="small")
plt.show()
