"""The work of verbs other than compile: verifying, converting, finding, calibrating, launching."""
