"""The data: Topology, Collective, Schedule, Program; their text form, verifier and cost model.

Nothing enters but numbers and text; everything else in collc knows this package, and it knows nobody.
"""
