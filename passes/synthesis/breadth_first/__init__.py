"""BFB: breadth-first schedules with exactly balanced loads, on any network."""
