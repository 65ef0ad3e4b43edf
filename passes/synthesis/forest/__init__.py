"""Spanning-tree packing (ForestColl): optimal forests on any network, switches included.

In the order data flow: ``optimum`` (the bottleneck cut and how many trees a rank sends), ``capacities`` (links as
numbers of trees), ``switches`` (out they go), ``packing`` or ``orbits`` (trees), ``routes`` (back to physical links),
``scheduler`` (the pass).
"""
