"""Problem -> Schedule: the schedule of an expanded topology from the schedule of its base.

Section 5 and appendices A.6, B and D of the direct-connect paper, one module per expansion. Each takes the base's
allgather and the expanded topology, finds the topology's links by their ends, and returns the expanded allgather.
"""
