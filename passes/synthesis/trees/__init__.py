"""The double binary tree."""
