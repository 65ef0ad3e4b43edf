"""The topology finder: search for networks of a given size and degree with cheap schedules.

:mod:`.evaluate` computes the exact cost of an allgather by BFB. :mod:`.groups` lists groups of a given order.
:mod:`.cayley` searches their Cayley digraphs, and :mod:`.lines` the line graphs of those.
"""
