"""Parts of the fitted estimators of other packages: one entry per type."""
