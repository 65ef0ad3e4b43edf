"""The families of graphs that benchmarks/climb.py climbs to: a module each, and their climbs in C."""
