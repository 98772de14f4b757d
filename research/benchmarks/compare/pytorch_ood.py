"""pytorch-ood: detectors on a trained network; the threshold is the user's own."""

import torch
from compare.network import train
from pytorch_ood.detector import KNN, EnergyBased, Mahalanobis, MaxSoftmax
from sklearn.model_selection import train_test_split

METHODS = {
    "largest probability": "network",
    "energy": "network",
    "Mahalanobis": "network",
    "nearest neighbours": "network",
}
DETECTORS = {
    "largest probability": MaxSoftmax,
    "energy": EnergyBased,
    "Mahalanobis": lambda network: Mahalanobis(network[:-1]),
    "nearest neighbours": lambda network: KNN(network[:-1]),
}


def fit(X, y, method, seed):
    X, X_held, y, _ = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    X, X_held, y = map(torch.tensor, (X, X_held, y))
    network = train(X, y, seed)
    detector = DETECTORS[method](network).to("cpu")
    detector.fit([(X, y)])
    with torch.no_grad():
        return network, detector, torch.quantile(detector(X_held), 0.95)


@torch.no_grad()
def answer(model, X):
    network, detector, threshold = model
    X = torch.tensor(X)
    scores = detector(X)
    return network(X).argmax(dim=1), scores, scores > threshold
