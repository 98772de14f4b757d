"""The rows that the methods of a suite are given."""
