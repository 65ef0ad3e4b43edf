"""What schedules cost, exactly, and bounds that no schedule beats."""
