"""All-to-all on clusters of boxes: balance inside the box, one-to-one rounds between boxes, forward inside."""
