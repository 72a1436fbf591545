"""The interface inefficiency eta: how far the tokens of calls lie above what their choices need at least.

    B = l(s) + H/b        tokens that must be spent: the description once or at each call, and the choice
    eta = (observed - B) / B,  observed = schema tokens charged + call tokens, failed calls included

b is how many bits a token can carry, log2 of the vocabulary's size. The source prints eta with one token = one bit;
that form is BIT_A_TOKEN. Both sides must be counted alike, per call or per session and with the same charge for the
schema: an `Accounting` says how, and mixing two is an error.

Read eta with care. l(s) stands above and below, so eta *rewards bloat*: useless schema tokens make it smaller. What it
is about is the call overhead, observed - B = call tokens - H/b, which l(s) leaves alone. All parts stand beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

from modtools.errors import UsageError

PER_CALL, PER_SESSION = "per call", "per session"
BIT_A_TOKEN = 1.0


@dataclass(frozen=True)
class Accounting:
    """How both sides of a comparison are counted.

    Attributes:
        per: "per call" or "per session".
        schema_charge: how many times l(s) is charged in that unit: 1 for a description that is read at each call and
            counted per call; n for one that is read at each of a session's n calls; 1 for one that is read once a
            session; 1/n for that spread over the session's calls; a cache model's factor otherwise.
    """

    per: str
    schema_charge: float

    def __post_init__(self):
        if self.per not in (PER_CALL, PER_SESSION) or not 0 <= self.schema_charge < float("inf"):
            raise UsageError(
                f"accounting {self.per!r}, charge {self.schema_charge}: expected {PER_CALL!r} or {PER_SESSION!r}, and a "
                f"charge of at least 0"
            )


@dataclass(frozen=True)
class Spent:
    """What was spent, in tokens, under an accounting.

    Attributes:
        accounting: how it was counted.
        schema: l(s), the description once.
        call: tokens of the calls, failed ones included; reasoning and observations are not in it.
    """

    accounting: Accounting
    schema: float
    call: float

    @property
    def observed(self) -> float:
        """Schema tokens charged, and call tokens."""
        return self.accounting.schema_charge * self.schema + self.call


@dataclass(frozen=True)
class Needed:
    """What the choices need at least, under an accounting.

    Attributes:
        accounting: how it is counted.
        entropy_bits: H of the choices, in that unit (of one call, or of a session's calls together).
        bits_a_token: b.
    """

    accounting: Accounting
    entropy_bits: float
    bits_a_token: float

    @property
    def choice_tokens(self) -> float:
        """H/b."""
        return self.entropy_bits / self.bits_a_token


@dataclass(frozen=True)
class Inefficiency:
    """eta with the parts without which it says little.

    Attributes:
        eta: (observed - B) / B.
        schema_tokens: l(s), the description once.
        charged_tokens: schema tokens charged in the unit.
        call_tokens: of the calls.
        choice_tokens: H/b.
        overhead_tokens: call tokens - H/b; below 0 only where H was overestimated.
    """

    eta: float
    schema_tokens: float
    charged_tokens: float
    call_tokens: float
    choice_tokens: float
    overhead_tokens: float

    def text(self) -> str:
        """One line with all parts."""
        return (
            f"eta {self.eta:.4g}: schema {self.charged_tokens:.4g} charged, calls {self.call_tokens:.4g}, "
            f"H/b {self.choice_tokens:.4g}, call overhead {self.overhead_tokens:.4g} tokens"
        )


def token_capacity(vocabulary_size: int) -> float:
    """b, the bits that one token of a vocabulary can carry: log2 |V|."""
    if vocabulary_size < 2:
        raise UsageError(f"a vocabulary of {vocabulary_size}: expected at least 2 tokens")
    return log2(vocabulary_size)


def inefficiency(spent: Spent, needed: Needed) -> Inefficiency:
    """eta of what was spent against what was needed.

    Raises:
        UsageError: where the two are counted differently, or a quantity is negative.
    """
    if spent.accounting != needed.accounting:
        raise UsageError(
            f"what was spent is counted {_said(spent.accounting)}, what is needed {_said(needed.accounting)}; count both "
            f"alike"
        )
    if min(spent.schema, spent.call, needed.entropy_bits) < 0 or needed.bits_a_token <= 0:
        raise UsageError("tokens and bits must not be negative, and a token must carry some bits")
    charged = spent.accounting.schema_charge * spent.schema
    bound = charged + needed.choice_tokens
    if bound == 0:
        raise UsageError("a surface without description and without choice has no inefficiency: B is 0")
    return Inefficiency(
        (spent.observed - bound) / bound,
        spent.schema,
        charged,
        spent.call,
        needed.choice_tokens,
        spent.call - needed.choice_tokens,
    )


def _said(accounting: Accounting) -> str:
    return f"{accounting.per} with the schema charged {accounting.schema_charge:g} times"
