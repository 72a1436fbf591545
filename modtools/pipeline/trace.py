"""The trace of one call: which steps it passed, where it stopped, and what each step found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from modtools.contract import Stage


class Step(StrEnum):
    """The pipeline's steps, in order. Part 05's nine stand behind the extraction that Module 2 puts first."""

    EXTRACT = "extract"
    PARSE = "parse"
    RESOLVE = "resolve"
    VALIDATE = "validate"
    CANONICALISE = "canonicalise"
    CLASSIFY = "classify"
    AUTHORISE = "authorise"
    BIND = "bind"
    EXECUTE = "execute"
    NORMALISE = "normalise"
    COMMIT = "commit"


STAGE_OF: dict[Step, Stage] = {
    Step.EXTRACT: Stage.EXTRACT,
    Step.PARSE: Stage.PARSE,
    Step.RESOLVE: Stage.VALIDATE,
    Step.VALIDATE: Stage.VALIDATE,
    Step.CANONICALISE: Stage.SEMANTIC,
    Step.CLASSIFY: Stage.SEMANTIC,
    Step.AUTHORISE: Stage.SEMANTIC,
    Step.BIND: Stage.DISPATCH,
    Step.EXECUTE: Stage.DISPATCH,
    Step.NORMALISE: Stage.DISPATCH,
    Step.COMMIT: Stage.DISPATCH,
}


@dataclass(frozen=True)
class StepRecord:
    """One step of one call.

    Attributes:
        step: which.
        passed: whether the call went on from here.
        detail: what the step found, for people.
        duration_s: seconds it took.
    """

    step: Step
    passed: bool
    detail: str
    duration_s: float
