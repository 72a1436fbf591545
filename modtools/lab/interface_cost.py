"""What each surface's interface cost in a run: schema tokens, call overhead, and eta with all its parts.

Counted per session, which is an episode. Two charges for the schema stand side by side: read once, as where a cache
keeps it; and read at every turn, as a model without one does. H, what had to be chosen, comes from the generator (see
`choice_entropy`) and is the same on every surface. What the run alone could tell of it stands beside, by the
Chao-Wang-Jost estimator: of the kinds of operations much, of whole operations next to nothing, since hardly one comes up
twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from modtools.errors import UsageError
from modtools.lab.choice_entropy import choice_entropy
from modtools.lab.metrics import Estimate, Record, mean
from modtools.lab.plan import plan_of
from modtools.schemas.entropy import counts_of
from modtools.schemas.entropy_estimate import EntropyEstimate, estimate_entropy
from modtools.schemas.inefficiency import PER_SESSION, Accounting, Needed, Spent, inefficiency, token_capacity

Part = dict[str, Any]


def interface_costs(
    manifest: Mapping[str, Any], records: Sequence[Record], references: Sequence[Record] = ()
) -> dict[str, Any]:
    """The cost of each surface's interface.

    Args:
        manifest, records: of the run.
        references: the reference solutions' records, from which entropies are estimated; none are where it is empty.

    Returns:
        "bits_a_token", "choice" (ChoiceEntropy), "sampled" (estimates from the references, per family), "surfaces"
        (name -> schema tokens, turns, call tokens, call overhead, eta for both charges).

    Raises:
        UsageError: where the model's vocabulary is not known, or the tasks were not generated.
    """
    vocabulary = manifest["model"]["info"].get("vocabulary")
    if vocabulary is None:
        raise UsageError("the model names no vocabulary, so how many bits a token carries is not known")
    ran = {record["task"] for record in records}
    choice = choice_entropy([task for task in plan_of(manifest).tasks() if task.id in ran])
    capacity = token_capacity(vocabulary)
    surfaces = {}
    for name, pinned in manifest["pinned"]["surfaces"].items():
        episodes = [record for record in records if record["surface"] == name]
        if episodes:
            surfaces[name] = _surface(episodes, pinned["schema_tokens"], choice.bits, capacity)
    return {
        "bits_a_token": capacity,
        "choice": asdict(choice),
        "sampled": sampled_entropies(references),
        "surfaces": surfaces,
    }


def _surface(episodes: Sequence[Record], schema: float, bits: float, capacity: float) -> Part:
    turns = mean(episodes, lambda record: len(record["turns"]))
    call = mean(episodes, lambda record: record["tokens"]["call"])
    overhead = mean(episodes, lambda record: record["tokens"]["call"] - bits / capacity)
    eta = {}
    for name, charge in (("read once", 1.0), ("read at every turn", turns.value)):
        accounting = Accounting(PER_SESSION, charge)
        eta[name] = asdict(inefficiency(Spent(accounting, schema, call.value), Needed(accounting, bits, capacity)))
    return {
        "schema_tokens": schema,
        "turns": asdict(turns),
        "call_tokens": asdict(call),
        "overhead_tokens": asdict(overhead),
        "eta": eta,
    }


def sampled_entropies(references: Sequence[Record]) -> dict[str, Part]:
    """Family -> what its references' calls on the fine surface tell of entropies per call, by Chao-Wang-Jost.

    "kind": of the kind of operation, H(T|C); "operation": of the whole canonical operation, H(T, A|C).
    """
    calls: dict[str, list[tuple[str, str]]] = {}
    for record in references:
        if record["surface"] == "fine":
            done = [(turn["action"], turn["operation"]) for turn in record["turns"] if turn["operation"]]
            calls.setdefault(record["family"], []).extend(done)
    return {
        family: {
            "calls": len(of),
            "kind": asdict(estimate_entropy(counts_of(action for action, _ in of))),
            "operation": asdict(estimate_entropy(counts_of(operation for _, operation in of))),
            "kinds": dict(Counter(action for action, _ in of)),
        }
        for family, of in sorted(calls.items())
        if len(of) > 1
    }


def interface_text(costs: Mapping[str, Any]) -> str:
    """The same as a part of the report, in Markdown."""
    if "surfaces" not in costs:
        return f"## What the interface cost\n\nWhat eta needs was {costs['text']}."
    choice, capacity = costs["choice"], costs["bits_a_token"]
    head = ["surface", "l(s)", "turns", "call tokens", "call overhead", "eta, read once", "eta, read at every turn"]
    rows = [
        [
            name,
            f"{of['schema_tokens']}",
            Estimate(**of["turns"]).text(1),
            Estimate(**of["call_tokens"]).text(0),
            Estimate(**of["overhead_tokens"]).text(0),
            *(f"{each['eta']:.3g}" for each in of["eta"].values()),
        ]
        for name, of in costs["surfaces"].items()
    ]
    error = "no error known" if choice["error"] is None else f"standard error {choice['error']:.1f}"
    slack = f", at most {choice['slack']:.1f} too high for drafts drawn anew" if choice["slack"] else ""
    parts = [
        "## What the interface cost",
        f"Per episode, in tokens. H, from the generator: {choice['bits']:.1f} bits a task ({error}"
        f"{slack}), so H/b = {choice['bits'] / capacity:.1f} tokens at {capacity:.2f} bits a token. "
        "The call overhead is call tokens - H/b. eta sets it against l(s) as well, so a longer description makes eta "
        "smaller: read it with its parts.",
        _table(head, rows),
    ]
    if costs["sampled"]:
        rows = [
            [family, str(of["calls"]), *(EntropyEstimate(**of[part]).text() for part in ("kind", "operation"))]
            for family, of in costs["sampled"].items()
        ]
        parts += [
            "What the references' calls alone tell of entropies per call, in bits (Chao-Wang-Jost; an interval where "
            "coverage allows one, else a lower bound):",
            _table(["family", "calls", "H(T given C)", "H(T, A given C)"], rows),
        ]
    return "\n\n".join(parts)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join("| " + " | ".join(line) + " |" for line in (head, ["---"] * len(head), *rows))
