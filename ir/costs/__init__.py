"""The exact costs of schedules, and bounds that no schedule beats."""
