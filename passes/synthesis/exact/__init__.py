"""Exact schedules of small networks: fewest steps, least bandwidth time, and everything between.

Bounds first (:mod:`.demand`), then mixed-integer programs over which rank has which part after which step
(:mod:`.model`), then exact schedules of the solutions (:mod:`.schedules`). :mod:`.scheduler` is the pass.
"""
