"""probly: an ensemble of five perceptrons, ranked by epistemic uncertainty (mutual information)."""

import numpy as np
from probly.method import ensemble
from probly.quantification import quantify
from probly.representer import representer
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

METHODS = {"ensemble of 5": "perceptron"}


def fit(X, y, method, seed):
    X, X_held, y, _ = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    members = ensemble(MLPClassifier((128, 128)), 5, predictor_type="probabilistic_classifier")
    for member in members:
        member.fit(X, y)
    model = representer(members)
    return model, np.quantile(quantify(model.represent(X_held)).epistemic, 0.95)


def answer(model, X):
    model, threshold = model
    found = model.represent(X)
    scores = quantify(found).epistemic
    return found.sample_mean().probabilities.argmax(axis=1), scores, scores > threshold
