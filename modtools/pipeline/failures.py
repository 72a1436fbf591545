"""The table of failure modes: every way a call can go wrong between the model's text and its effect.

This table is the one place that ties a failure's code to the stage it belongs to, to the outcome a request
ends in, and to the question of Module 2: could the decoder have removed it? "yes" means a grammar rules it
out; "world" means only a grammar into which the state of the world was compiled (an enum of the existing
paths); "no" means no decoder can.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from modtools.contract import Failure, Outcome, Stage


@dataclass(frozen=True)
class FailureMode:
    """One row of the table.

    Attributes:
        code: the name used in traces, audit, observations and reports.
        stage: where the call dies.
        outcome: how the request ends; for a tool with effects, dispatch failures may be worse (see `outcome_of`).
        decoder: "yes", "world" or "no": can the decoder remove it?
        retryable: whether the same call may be sent again unchanged.
        meaning: what it means, for people.
    """

    code: str
    stage: Stage
    outcome: Outcome
    decoder: str
    retryable: bool
    meaning: str


def _rows(stage: Stage, outcome: Outcome, *rows: tuple[str, str, str]) -> list[FailureMode]:
    return [FailureMode(code, stage, outcome, decoder, False, meaning) for code, decoder, meaning in rows]


_INVALID = Outcome.VALIDATION_FAILED

_TABLE = [
    *_rows(
        Stage.EXTRACT,
        _INVALID,
        ("none_found", "yes", "the reply holds no call"),
        ("several_calls", "yes", "the reply holds more than one call where one is allowed"),
        ("example_call", "yes", "a call stands inside prose or is followed by more text: an example, not a request"),
        ("truncated", "no", "the reply was cut at the token limit inside a call"),
        ("wrong_wrapper", "yes", "a call in another format than the one asked for"),
    ),
    *_rows(
        Stage.PARSE,
        _INVALID,
        ("trailing_comma", "yes", "a comma before a closing bracket"),
        ("single_quotes", "yes", "strings in single quotes"),
        ("control_character", "yes", "a raw newline or other control character inside a string"),
        ("unbalanced", "yes", "brackets or quotes that are not closed"),
        ("nan_infinity", "yes", "NaN or an infinite number"),
        ("duplicate_key", "yes", "the same key twice in one object"),
        ("lone_surrogate", "yes", "half of a surrogate pair"),
        ("too_deep", "yes", "nested deeper than the limit"),
        ("too_large", "yes", "longer than the limit"),
        ("chunk_lost", "no", "the stream ended before its last chunk"),
        ("not_json", "yes", "any other departure from JSON"),
    ),
    *_rows(
        Stage.VALIDATE,
        _INVALID,
        ("unknown_tool", "yes", "a name that was never in the catalogue"),
        ("ambiguous_tool", "yes", "a name that several servers use, written without its server"),
        ("missing_argument", "yes", "a required argument is absent"),
        ("wrong_type", "yes", "a value of another type than declared"),
        ("not_in_enum", "yes", "a value that is not one of the listed ones"),
        ("out_of_range", "yes", "a value outside the declared bounds, length, pattern or format"),
        ("unknown_property", "yes", "an argument the tool does not declare"),
        ("arguments_as_string", "yes", "the arguments are JSON text inside a string"),
        ("invalid_argument", "yes", "a value that no alternative of the schema accepts"),
    ),
    *_rows(
        Stage.SEMANTIC,
        _INVALID,
        ("unknown_operation", "yes", "an operation name the coarse tool does not know"),
        ("outside_workspace", "no", "a path that leads out of the workspace"),
        ("missing_path", "world", "a path that does not exist"),
        ("malformed_identifier", "yes", "a path or identifier that is not well formed"),
        ("command_not_allowed", "yes", "a command that is not on the allow-list"),
        ("stale_version", "world", "the resource changed since it was read"),
        ("precondition_failed", "world", "the state of the world does not allow the operation"),
        ("idempotency_conflict", "no", "other work was done before under the same idempotency key"),
    ),
    FailureMode("not_authorised", Stage.SEMANTIC, Outcome.PERMISSION_DENIED, "no", False, "the policy denies it"),
    FailureMode("approval_invalid", Stage.SEMANTIC, Outcome.PERMISSION_DENIED, "no", False, "an approval does not fit"),
    FailureMode("hook_denied", Stage.SEMANTIC, Outcome.PERMISSION_DENIED, "no", False, "a hook refuses it"),
    FailureMode("hook_failed", Stage.SEMANTIC, Outcome.PERMISSION_DENIED, "no", False, "a critical hook broke"),
    FailureMode(
        "reentrant_call", Stage.SEMANTIC, Outcome.PERMISSION_DENIED, "no", False, "a hook calls what it guards"
    ),
    FailureMode("approval_needed", Stage.SEMANTIC, Outcome.APPROVAL_REQUIRED, "no", False, "a person must approve"),
    FailureMode("retired_tool", Stage.VALIDATE, Outcome.UNAVAILABLE_TOOL, "world", False, "a stale or revoked tool"),
    FailureMode("timeout", Stage.DISPATCH, Outcome.TIMEOUT, "no", True, "no result in time, and nothing was changed"),
    FailureMode("crash", Stage.DISPATCH, Outcome.UNAVAILABLE_TOOL, "no", True, "the tool broke"),
    FailureMode("unavailable", Stage.DISPATCH, Outcome.UNAVAILABLE_TOOL, "no", False, "the tool cannot be reached"),
    FailureMode("rate_limited", Stage.DISPATCH, Outcome.UNAVAILABLE_TOOL, "no", True, "too many calls for now"),
    FailureMode("busy", Stage.DISPATCH, Outcome.UNAVAILABLE_TOOL, "no", True, "another call holds what it needs"),
    FailureMode("tool_error", Stage.DISPATCH, Outcome.UNAVAILABLE_TOOL, "no", False, "the tool reports an error"),
    FailureMode("cancelled", Stage.DISPATCH, Outcome.CANCELLED, "no", True, "cancelled before anything was done"),
    FailureMode("partial", Stage.DISPATCH, Outcome.PARTIAL, "no", False, "part of the work was done"),
    FailureMode("program_error", Stage.DISPATCH, Outcome.PARTIAL, "no", False, "the program ended with an error"),
    FailureMode("unknown_outcome", Stage.DISPATCH, Outcome.UNKNOWN_OUTCOME, "no", False, "it may or may not be done"),
    FailureMode("already_done", Stage.DISPATCH, Outcome.SUCCESS, "no", False, "it was done before, and not done again"),
    FailureMode("result_too_large", Stage.DISPATCH, Outcome.SUCCESS, "no", False, "the result is shown in part"),
    FailureMode(
        "result_wrong_shape", Stage.DISPATCH, Outcome.UNAVAILABLE_TOOL, "no", False, "the result breaks its contract"
    ),
    FailureMode("audit_unavailable", Stage.DISPATCH, Outcome.UNAVAILABLE_TOOL, "no", True, "no record can be kept"),
]

FAILURES: dict[str, FailureMode] = {mode.code: mode for mode in _TABLE}

HOST_CODES = frozenset(
    "unknown_tool ambiguous_tool retired_tool idempotency_conflict not_authorised approval_invalid hook_denied "
    "hook_failed reentrant_call approval_needed already_done audit_unavailable".split()
)
"""What only the host can say of a call."""


def from_tool(failure: Failure) -> Failure:
    """The failure that a tool reports; under a code of its own, or one that only the host can say, it is a tool_error."""
    if failure.code in FAILURES and failure.code not in HOST_CODES:
        return failure
    return replace(failure, code="tool_error", what=f"{failure.code}: {failure.what}")


# After the handler has begun, these leave it open whether the effect took place.
_OPEN_AFTER_START = {"timeout", "crash", "cancelled", "result_wrong_shape"}


def outcome_of(code: str, started: bool = False, has_effects: bool = False) -> Outcome:
    """The outcome a failure ends in. A tool with effects that had begun leaves UNKNOWN_OUTCOME where we cannot know."""
    if code in _OPEN_AFTER_START and started and has_effects:
        return Outcome.UNKNOWN_OUTCOME
    return FAILURES[code].outcome
