"""dipedl on a trained network: one pass over the training rows, held-out rows for the alarm."""

import torch
from compare.network import trained
from sklearn.model_selection import train_test_split

from dipedl import DIPModule

METHODS = {"on a network": "network"}


def fit(X, y, method, seed):
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    X, X_held, y, y_held = map(torch.tensor, (X, X_held, y, y_held))
    network = trained(X, y, seed)
    return DIPModule(network).fit_density([(X, y)], calibration=[(X_held, y_held)])


def answer(model, X):
    found = model.answers(torch.tensor(X))
    return found.labels, -found.p_values, found.flagged
