"""Experiments beside the lab: single calls, asked for in several ways."""
