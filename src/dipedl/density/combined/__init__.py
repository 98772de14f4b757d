"""Densities made of densities: choice, fusion, ratio, sum over blocks."""
