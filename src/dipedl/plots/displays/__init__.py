"""Displays in scikit-learn's manner: asked of an estimator or given its answers, then drawn."""
