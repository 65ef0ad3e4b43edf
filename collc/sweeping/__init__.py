"""Sweeps: the predicted times of many collectives on many networks by many schedulers, as one table.

``cases`` compiles one schedule and predicts its times, ``sweep`` runs all cases with any executor and a cache,
``files`` writes tables as CSV, JSON, Markdown or Parquet.
"""
