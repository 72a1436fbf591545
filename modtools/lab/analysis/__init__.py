"""The planned analysis of Lab 2: from episode records to four estimands with intervals and verdicts.

The unit is the task. An episode's seeds are averaged first, and surfaces are compared within a task, so that what makes
one task harder than another cancels. Source of the choices: coverage and power simulations in the tests of this folder.
"""

from modtools.lab.analysis.hypotheses import HYPOTHESES, Hypothesis, Verdict, verdicts

__all__ = ["HYPOTHESES", "Hypothesis", "Verdict", "verdicts"]
