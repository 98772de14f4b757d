"""
Two moons
=========

A try.
"""

# %%
# Fit
import matplotlib.pyplot as plt
from sklearn.datasets import make_moons
from sklearn.linear_model import LogisticRegression

from dipedl import DIPClassifier

X, y = make_moons(200, noise=0.1, random_state=0)
clf = DIPClassifier(LogisticRegression()).fit(X, y)
plt.scatter(*X.T, c=clf.uncertainty(X))
