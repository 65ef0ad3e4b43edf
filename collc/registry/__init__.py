"""From names and options to passes, targets and schedulers."""
