"""How estimators, features and densities are cloned, fitted and asked, with checks."""
