"""Swing and related algorithms: exchanges along the dimensions of a logical torus."""
