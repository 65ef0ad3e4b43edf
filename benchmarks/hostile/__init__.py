"""The campaign's rooms: texts to try, faults to plant, answers to judge, files and signals, reproducers."""
