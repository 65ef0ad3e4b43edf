"""The driver: compile a request to files by the passes of a plan."""
