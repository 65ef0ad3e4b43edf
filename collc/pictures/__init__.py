"""The pictures of the command, ``goodput`` and ``frontier``, drawn with :mod:`collc.backends.pictures`."""
