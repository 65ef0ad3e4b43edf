"""From programs to one-sided programs, and their passes: where messages land, who waits for whom, what fits."""
