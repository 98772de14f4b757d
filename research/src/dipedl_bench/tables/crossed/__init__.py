"""Tables of a crossed suite: a line for each data set, OOD set and classifier."""
