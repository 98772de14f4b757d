"""Augmentations of images, one per file."""
