"""Analyses that passes on programs share: hazards, clocks, times."""
