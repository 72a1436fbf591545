"""Counts of texts."""
