"""Array namespaces, special functions, scores of class probabilities, kinds of uncertainty."""
