"""Ablation, sweeps and toy experiments."""
