"""dipedl around a scikit-learn classifier: its default density, its own held-out rows."""

from sklearn.ensemble import RandomForestClassifier
from sklearn.neural_network import MLPClassifier

from dipedl import DIPClassifier

METHODS = {"around a forest": "forest", "around a perceptron": "perceptron"}
CLASSIFIERS = {
    "forest": lambda seed: RandomForestClassifier(random_state=seed),
    "perceptron": lambda seed: MLPClassifier((128, 128), random_state=seed),
}


def fit(X, y, method, seed):
    return DIPClassifier(CLASSIFIERS[METHODS[method]](seed), random_state=seed).fit(X, y)


def answer(model, X):
    found = model.answers(X)
    return found.labels, -found.p_values, found.flagged
