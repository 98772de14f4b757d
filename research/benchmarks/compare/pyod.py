"""PyOD: a detector beside the classifier; its threshold comes from its share of training rows."""

from pyod.models.ecod import ECOD
from pyod.models.iforest import IForest
from pyod.models.knn import KNN
from pyod.models.lof import LOF
from sklearn.ensemble import RandomForestClassifier

METHODS = {"IForest": "forest", "ECOD": "forest", "KNN": "forest", "LOF": "forest"}
DETECTORS = {"IForest": IForest, "ECOD": ECOD, "KNN": KNN, "LOF": LOF}


def fit(X, y, method, seed):
    clf = RandomForestClassifier(random_state=seed).fit(X, y)
    return clf, DETECTORS[method](contamination=0.05).fit(X)


def answer(model, X):
    clf, detector = model
    return clf.predict(X), detector.decision_function(X), detector.predict(X) == 1
