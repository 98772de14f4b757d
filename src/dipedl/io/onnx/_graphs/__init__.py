"""Densities, evidence and whole models as graphs, node by node, with the constants of the maths.

They are not traced from the code that scores. A trial with ``torch.onnx.export`` of one Gaussian
took a module as long as the converter, needed PyTorch for a scikit-learn model, ran for seconds
instead of milliseconds, and wrote a float64 constant as float32: a gap of 2e-8 nats. The fast
scores of numpy run in BLAS and LAPACK, which no tracer sees.
"""
