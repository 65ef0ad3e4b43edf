"""Passes from schedule to schedule."""
