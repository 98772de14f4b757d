"""Losses of evidential deep learning and their parts."""
