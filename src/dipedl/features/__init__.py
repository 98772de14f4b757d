"""Features: what a density sees of the inputs, as a finite array of numbers."""
