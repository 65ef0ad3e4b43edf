"""Swing and the algorithms that it is compared with: exchanges along the dimensions of a logical torus."""
