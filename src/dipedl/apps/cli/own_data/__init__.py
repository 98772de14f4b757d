"""Commands for a user's own data: fit, score, explain, inspect, check, report."""
