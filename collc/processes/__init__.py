"""Processes that this one starts: pools of workers, and ending all children."""
