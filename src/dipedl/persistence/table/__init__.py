"""What a fitted estimator of another package consists of: one entry per type."""
