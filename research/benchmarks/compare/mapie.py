"""MAPIE: prediction sets of coverage 95 %; a row whose set is not one class is flagged."""

from mapie.classification import SplitConformalClassifier
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split

METHODS = {"size of the LAC set": "forest", "size of the APS set": "forest"}
SETS = {"size of the LAC set": "lac", "size of the APS set": "aps"}


def fit(X, y, method, seed):
    X, X_held, y, y_held = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    clf = RandomForestClassifier(random_state=seed)
    model = SplitConformalClassifier(clf, 0.95, SETS[method], prefit=False, random_state=seed)
    return model.fit(X, y).conformalize(X_held, y_held)


def answer(model, X):
    labels, sets = model.predict_set(X)
    sizes = sets[:, :, 0].sum(axis=1)
    return labels, abs(sizes - 1), sizes != 1
