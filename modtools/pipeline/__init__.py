"""From a model's text to an observation: one pipeline, one trace a call, ten outcomes."""

from modtools.pipeline.audit import AuditLog
from modtools.pipeline.extract import ENVELOPE, FINISH, extract
from modtools.pipeline.failures import FAILURES, FailureMode
from modtools.pipeline.observe import Wording
from modtools.pipeline.pipeline import Pipeline
from modtools.pipeline.policy import WORKSPACE_POLICY, Policy, Rule
from modtools.pipeline.request import Request, Result
from modtools.pipeline.trace import STAGE_OF, Step, StepRecord

__all__ = [
    "ENVELOPE", "FAILURES", "FINISH", "STAGE_OF", "WORKSPACE_POLICY", "AuditLog", "FailureMode", "Pipeline",
    "Policy", "Request", "Result", "Rule", "Step", "StepRecord", "Wording", "extract",
]  # fmt: skip
