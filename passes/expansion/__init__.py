"""Problem -> Schedule: the schedule of an expanded topology from the schedule of its base.

Section 5 and appendices A.6, B and D of the direct-connect paper, a module an expansion. Each takes the base's
allgather and the expanded topology, whose links it finds by their ends, and gives the expanded allgather.
"""
