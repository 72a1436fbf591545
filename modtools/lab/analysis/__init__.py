"""The planned analysis of Lab 2: pure functions from episode records to estimates, tests and verdicts.

Each estimand is worked out per task first (the mean over its seeds), so that a task counts once. Where the data
support no interval or test, the result says so by name (`Contrast.outcome`); nothing is silently NaN.
"""
