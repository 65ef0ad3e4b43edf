"""Algorithms on topologies: cuts, bottlenecks, isomorphisms, trees."""
