"""Approvals: a person's answer to an ask, bound to the one operation that was asked about.

They are made here and travel beside a call, never among its arguments: a model can neither write nor replay one.
An approval lifts one ask, for one execution, for a limited time, and only while everything that the decision was
bound to is as it was. The request that was asked about has ended; the approval opens a new one that names it.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from modtools.contract import Outcome
from modtools.errors import UsageError
from modtools.pipeline.audit import AuditLog


@dataclass(frozen=True)
class Approval:
    """A person's answer.

    Attributes:
        id: names it in a later request.
        request: id of the request that ended in approval_required.
        ask: name of the rule that asked.
        binding: digest of all the decision was bound to.
        by: who approved.
        expires: seconds since 1970.
    """

    id: str
    request: str
    ask: str
    binding: str
    by: str
    expires: float


def approve(audit: AuditLog, request: str, by: str, valid_s: float = 600.0) -> Approval:
    """Approve what a request asked for, and write it into the audit.

    Args:
        audit: of the pipeline that took the request.
        request: its id.
        by: who approves.
        valid_s: seconds for which the approval is good.

    Raises:
        UsageError: where the request did not end in approval_required.
        RecordError: where the audit cannot be written; then nothing is approved.
    """
    line = audit.ledger.ended(request)
    decision = (line or {}).get("decision") or {}
    if not line or line["outcome"] != Outcome.APPROVAL_REQUIRED or not decision.get("rule"):
        ended = line["outcome"] if line else "unknown to this audit"
        raise UsageError(f"request {request!r} is {ended}; only one that ended in approval_required can be approved")
    if not by or not 0 < valid_s < math.inf:
        raise UsageError(f"approved by {by!r} for {valid_s} s: expected a name, and a time above 0 that ends")
    expires = round(audit.clock() + valid_s, 6)
    approval = Approval(uuid.uuid4().hex, request, decision["rule"], decision["binding"], by, expires)
    fields = asdict(approval)
    audit.append(request, "approved", {"approval": fields.pop("id"), **fields})
    return approval


def lifted_asks(audit: AuditLog, ids: Sequence[str], binding: str) -> tuple[frozenset[str], str]:
    """The asks that these approvals lift for one operation.

    Args:
        audit: in which they were written.
        ids: of the approvals that came with a request.
        binding: of the operation that is to be done now.

    Returns:
        (names of asks, "") or (nothing, which approval does not fit and why). One that does not fit spoils all: who
        presents it believes something that is not so.
    """
    asks = set()
    for id in ids:
        line = audit.ledger.approvals.get(id)
        if line is None:
            return frozenset(), "there is no such approval"
        if id in audit.ledger.used:
            return frozenset(), "the approval was used; it is good for one execution"
        if audit.clock() >= line["expires"]:
            return frozenset(), "the approval has expired"
        if line["binding"] != binding:
            return frozenset(), "the approval is for another operation, or something it was bound to has changed"
        asks.add(line["ask"])
    return frozenset(asks), ""
