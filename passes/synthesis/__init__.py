"""Problem -> Schedule: the schedulers."""
