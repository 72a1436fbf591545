"""Whether two tools of one name are the same, may follow each other, and what changed between two snapshots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from modtools.catalogue.changes import Change, ChangeKind
from modtools.catalogue.snapshot import Snapshot, origin
from modtools.contract import Tool
from modtools.errors import UsageError


def difference(seen: Snapshot, now: Snapshot, changes: Iterable[Change], name: str) -> str:
    """What keeps a call by `name`, made on the snapshot `seen`, from running on the snapshot `now`.

    Args:
        seen: the snapshot of the turn in which the call was written; it may be a part.
        now: the current, whole snapshot.
        changes: those that led to `now`.
        name: qualified or plain, as it was written.

    Returns:
        "" where it reaches the very same tool: the same contract, save for a deprecation, and the same functions
        behind it. Else what changed, in words.
    """
    before = seen.find(name)
    if len(before) != 1:
        return f"it named {len(before)} tools of catalogue version {seen.version}"
    (old,) = before
    own = old.qualified_name
    if seen.part:  # what the part does not hold cannot make a name ambiguous
        now = now.only(kept for kept in seen.tools if kept in now.tools)
    # A namesake that came and went retired the plain name for later turns; this turn meant the tool it saw.
    after = now.find(name) or tuple(now.tools[known] for known in (own,) if known in now.tools)
    if len(after) > 1:
        names = ", ".join(tool.qualified_name for tool in after)
        return f"ambiguous in catalogue version {now.version}: it may mean {names}"
    if after and after[0].qualified_name != own:
        return f"in catalogue version {now.version} it would reach {after[0].qualified_name}, no longer {own}"
    if after and _same(old, after[0]):
        return ""
    since = [
        change.detail
        for change in changes
        if change.version > seen.version and own in change.names and change.kind != ChangeKind.DEPRECATED
    ]
    return "; ".join(since) or f"catalogue version {now.version} does not hold the tool that was seen"


def check_successor(old: Tool, new: Tool, again: bool = False) -> None:
    """UsageError where `new` may not follow `old` under their name.

    Args:
        old: the tool that has, or last had, the name.
        new: the tool that shall have it.
        again: whether the very contract may come back, as after the loss of a server.
    """
    name, had, has = old.qualified_name, old.contract.version, new.contract.version
    if old.source != new.source:
        raise UsageError(f"{name} is {origin(old)}, not {origin(new)}; register it under another name")
    if again and _promise(old) == _promise(new):
        return
    if tuple(map(int, has.split("."))) <= tuple(map(int, had.split("."))):
        same = f", or {had} with the contract it had" if again else ""
        raise UsageError(f"{name} was at version {had} and cannot become {has}; valid: a version above {had}{same}")


def _same(old: Tool, new: Tool) -> bool:
    """Whether a call of one is a call of the other: what is promised, and who keeps the promise."""
    if old is new:
        return True
    behind = old.handler is new.handler and old.canonicalise is new.canonicalise and old.takes_call == new.takes_call
    return behind and _promise(old) == _promise(new)


def _promise(tool: Tool) -> str:
    """Digest of a contract without its deprecation, which is advice and changes no call."""
    return replace(tool.contract, deprecated="").digest
