"""Training iterations: workloads from files, objectives of the finder, traces.

The model of an iteration is :mod:`collc.ir.costs.training`.
"""
