"""What stands behind verbs other than compile: verifying, converting, finding, calibrating, launching."""
