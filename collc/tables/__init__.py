"""Tables that leave the terminal: their columns as data, from which CSV, Markdown, JSON and their schemas follow.

``columns`` has what a column and a table are, ``forms`` writes them, ``listed`` names every table's columns.
``schemas`` describes the JSON objects of the command; ``collc schema`` prints them.
"""
