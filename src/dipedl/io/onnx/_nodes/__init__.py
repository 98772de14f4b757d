"""Tensors and operators of a graph."""
