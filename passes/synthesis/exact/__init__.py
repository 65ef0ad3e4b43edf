"""Exact schedules of small networks: fewest steps, least bandwidth time, and everything between.

Bounds first (:mod:`.demand`), then mixed-integer programs over who has which piece after which step (:mod:`.model`),
then exact schedules of what the solver found (:mod:`.schedules`). :mod:`.scheduler` is the pass.
"""
