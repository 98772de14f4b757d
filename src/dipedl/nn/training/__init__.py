"""The training loop: settings, checkpoints, schedule, progress."""
