"""The topology finder: search for networks of a given size and degree with cheap schedules.

:mod:`.evaluate` says exactly what an allgather by BFB costs, :mod:`.groups` which groups have a given order,
:mod:`.cayley` searches their Cayley digraphs and :mod:`.lines` the line graphs of those.
"""
