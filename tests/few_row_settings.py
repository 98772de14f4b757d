"""Arguments of densities and baselines for conformance checks, whose classes have few rows."""

from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import RBFSampler
from sklearn.pipeline import make_pipeline


def few_row_settings(name):
    """Return the arguments by the name of the class; none where its defaults will do."""
    # A mean of inputs leaves no linear space.
    curved = RBFSampler(gamma=2.0, n_components=64, random_state=0)
    if name in ("Residual", "ViM"):
        classifier = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.5)
        return {"estimator": make_pipeline(curved, classifier)}
    if name == "CoP":
        return {"features": curved}
    if name == "CoRP":
        return {"gamma": 20.0, "n_fourier": 64}
    if name == "KNNDistance":
        return {"n_neighbors": 5}
    if name in ("FlowDensity", "CEDL", "DeepEnsemble", "EnsembleDirichlet"):
        return of_networks(name)
    return {}


def of_networks(name):
    from dipedl.networks import MLP, MaskedAutoregressive, TorchClassifier, Training

    if name == "FlowDensity":
        training = Training(epochs=4, batch_size=20, learning_rate=0.05, n_jobs=1)
        flow = MaskedAutoregressive(transforms=2, hidden=(8,))
        return {"flow": flow, "training": training, "validation_fraction": 0.0}
    from dipedl.baselines import EDL, DeepEnsemble

    if name == "CEDL":
        training = Training(epochs=30, batch_size=16, learning_rate=0.02, n_jobs=1)
        return {"estimator": EDL(MLP((16,)), training)}
    training = Training(epochs=8, batch_size=16, learning_rate=0.02, n_jobs=1)
    members = {"estimator": TorchClassifier(MLP((32, 32)), training), "n_members": 3}
    return members if name == "DeepEnsemble" else {"estimator": DeepEnsemble(**members)}
