"""Spanning-tree packing (ForestColl): optimal forests on any network, switches included.

In the order of data flow: ``optimum`` (the bottleneck cut and the trees per rank), ``capacities`` (links as numbers of
trees), ``simplifying`` and ``switches`` (remove switches), ``packing`` or ``orbits`` (trees), ``routes`` (physical
links), ``scheduler`` (the pass).

Clusters of boxes skip most of that: ``boxes`` finds them, ``box_trees`` builds their trees. So do clusters of two
tiers: ``tiers`` finds pods of boxes, ``tier_trees`` builds trees from pod to pod and in each pod. An allreduce may
divide roots and links unevenly: ``allreduce_optimum`` says how, ``allreduce_trees`` packs what each direction gets.
"""
