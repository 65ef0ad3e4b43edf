"""The costs of compiled collectives as tables, which `collc cost` and `collc simulate` print and Python returns.

Results of the driver come in; rows leave, by the keys of the columns in ``collc.tables``.
"""
