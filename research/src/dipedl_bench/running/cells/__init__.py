"""A cell: methods that are given one classifier on one data set, in a process of its own."""
