"""
How sure is each probability? Credible intervals of one row
===========================================================

A probability of .5 may mean "half of such rows, I have seen hundreds", or "I have no idea".
``predict_dirichlet`` tells them apart: it gives an interval for each class probability, narrow
where much was seen.
"""

# %%
# 178 Italian wines of three growers, bundled with scikit-learn: 13 measurements each. A third is
# kept to ask about. How wide intervals must be to hold the truth is learned in the fit.

from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from dipedl import DIPClassifier

X, y = load_wine(return_X_y=True, as_frame=True)
y = "grower " + y.astype(str)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=1 / 3, random_state=0)
model = make_pipeline(StandardScaler(), LogisticRegression())
clf = DIPClassifier(model, random_state=0).fit(X_train, y_train)

# %%
# Three bottles: the most typical one, the one that the classifier doubts most, and the typical one
# again with its alcohol in grams per litre, where the training data have percent.

answer = clf.predict_dirichlet(X_test)
typical = X_test.iloc[[answer.vacuity.argmin()]]
between = X_test.iloc[[clf.uncertainty(X_test, "max_prob").argmax()]]
mistaken = typical.assign(alcohol=typical.alcohol * 7.89)
bottles = {
    "a typical bottle": typical,
    "between two growers": between,
    "alcohol in the wrong unit": mistaken,
}

answers = {name: clf.predict_dirichlet(bottle) for name, bottle in bottles.items()}
for name, one in answers.items():
    low, high = one.credible_interval(0.95)
    intervals = ", ".join(f"{a:.2f} to {b:.2f}" for a, b in zip(low[0], high[0], strict=True))
    print(f"{name:27} vacuity {one.vacuity[0]:.2f}; 95 % intervals {intervals}")

# %%
# Bars are the probabilities, lines their 95 % intervals, dashes what the classifier says alone: it
# is as sure of the bottle in the wrong unit as of the typical one.

import matplotlib.pyplot as plt

from dipedl.plots import dirichlet_bars

fig, axes = plt.subplots(1, 3, figsize=(9, 3.6), layout="constrained", sharey=True)
for ax, (name, bottle) in zip(axes, bottles.items(), strict=True):
    dirichlet_bars(answers[name][0], class_names=[str(c) for c in clf.classes_], ax=ax)
    alone = clf.classifier_proba(bottle)[0]
    ax.plot(alone, "_", color="#D55E00", markersize=16, markeredgewidth=2, label="classifier alone")
    ax.set_title(f"{name}\nvacuity {answers[name].vacuity[0]:.2f}", fontsize="medium")
    ax.set_ylim(-0.03, 1.03)
    ax.label_outer()
axes[0].set_ylabel("probability")
axes[0].patches[-1].set_label("with the evidence, 95 % interval")
fig.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
plt.show()
