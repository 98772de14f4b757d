"""Networks trained with an evidential loss."""
