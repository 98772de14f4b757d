"""torch-uncertainty: an ensemble, or dropout, and its OOD criteria; a threshold of the user's."""

import torch
from compare.network import train
from sklearn.model_selection import train_test_split
from torch_uncertainty.methods import deep_ensembles, mc_dropout
from torch_uncertainty.ood_criteria import get_ood_criterion

METHODS = {"ensemble of 5": "network", "dropout, 16 passes": "network"}
MODELS = {
    "ensemble of 5": lambda X, y, s: deep_ensembles([train(X, y, 5 * s + i) for i in range(5)]),
    "dropout, 16 passes": lambda X, y, seed: mc_dropout(train(X, y, seed), 16),
}


def fit(X, y, method, seed):
    X, X_held, y, _ = train_test_split(X, y, test_size=0.25, stratify=y, random_state=seed)
    X, X_held, y = map(torch.tensor, (X, X_held, y))
    model = MODELS[method](X, y, seed).eval()
    return model, torch.quantile(proba_and_scores(model, X_held)[1], 0.95)


@torch.no_grad()
def proba_and_scores(model, X):
    P = torch.stack(model(X).softmax(dim=-1).chunk(model.num_estimators), dim=1)
    return P.mean(dim=1), get_ood_criterion("mutual_information")(P)


def answer(model, X):
    model, threshold = model
    P, scores = proba_and_scores(model, torch.tensor(X))
    return P.argmax(dim=1), scores, scores > threshold
