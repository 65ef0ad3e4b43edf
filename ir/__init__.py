"""The data: Topology, Collective, Schedule, Program; their text form, verifier and cost model.

The package takes only numbers and text. All other packages of collc import it; it imports none of them.
"""
