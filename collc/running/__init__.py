"""Compiled collectives run over an MPI: calls, checks, times and predictions of the cost model."""
