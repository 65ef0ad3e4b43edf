"""What ``benchmarks/swing.py`` is made of: algorithms, networks, what the paper says of them, and the figures."""
