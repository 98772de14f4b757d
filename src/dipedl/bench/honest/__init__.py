"""The study "honest": our default against the bare classifier, over many data sets at once.

A suite of `dipedl.bench` has one data set and one network; this study has many data sets, each with
classifiers and foreign sets of its own, and its methods are given the classifiers themselves.
"""
