"""Pictures as SVG text: only this package writes SVG.

``svg`` has the elements and the page, ``style`` the colors for light and dark, ``lettering`` the sizes of texts.
``units``, ``ticks`` and ``axes`` turn values into places; ``charts`` draws curves and marks, ``timelines`` rows
of bars. ``layout`` says where the nodes of a network are.
"""
