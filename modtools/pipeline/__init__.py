"""From a model's text to an observation: one pipeline, one trace a call, ten outcomes."""

from modtools.pipeline.approvals import Approval
from modtools.pipeline.audit import AuditLog
from modtools.pipeline.background import BackgroundEvent
from modtools.pipeline.extract import ENVELOPE, FINISH, extract
from modtools.pipeline.failures import FAILURES, FailureMode
from modtools.pipeline.observe import Wording
from modtools.pipeline.pipeline import Pipeline
from modtools.pipeline.policy import WORKSPACE_POLICY, Decision, Level, Policy, Query, Rule, Verdict
from modtools.pipeline.request import Request, Result
from modtools.pipeline.trace import STAGE_OF, Step, StepRecord
from modtools.pipeline.verification import Verification, verify_audit

__all__ = [
    "ENVELOPE", "FAILURES", "FINISH", "STAGE_OF", "WORKSPACE_POLICY", "Approval", "AuditLog", "BackgroundEvent",
    "Decision", "FailureMode", "Level", "Pipeline", "Policy", "Query", "Request", "Result", "Rule", "Step",
    "StepRecord", "Verdict", "Verification", "Wording", "extract", "verify_audit",
]  # fmt: skip
