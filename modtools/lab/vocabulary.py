"""Words and moulds from which packages are cast: plausible small business code, drawn from a seed.

The word lists are kept apart so that a task's own names are never met by accident: NOUNS and CONSTANTS name
modules and what belongs to them; QUALIFIERS name what a task puts into a module, so that its name does not
betray the file; VERBS and THINGS name a task's functions; SETTINGS end the names of its constants.
"""

from __future__ import annotations

import random
from math import perm

from modtools.lab.packages import Definition, Module, Package

# All sort before "tests", so that a search that is cut off shows the package first.
PACKAGES = (
    "arena bakery brewery cannery cinema clinic dairy depot dockyard farmstead ferry foundry gallery garage "
    "greenhouse harbour hotel kiosk laundry market mill museum nursery orchard printshop quarry ropeworks school"
).split()

NOUNS = dict(
    pair.split(":")
    for pair in (
        "alarm:alarms batch:batches booking:bookings budget:budgets contract:contracts crate:crates "
        "delivery:deliveries discount:discounts dock:docks gauge:gauges invoice:invoices loan:loans "
        "member:members meter:meters order:orders pallet:pallets parcel:parcels payment:payments "
        "permit:permits pump:pumps quota:quotas reading:readings recipe:recipes refund:refunds "
        "room:rooms roster:rosters route:routes sensor:sensors shelf:shelves shift:shifts "
        "supplier:suppliers tariff:tariffs ticket:tickets valve:valves vehicle:vehicles voucher:vouchers"
    ).split()
)

QUALIFIERS = (
    "autumn bulk coastal damaged early express foreign fragile holiday inland late minor night oversize "
    "prepaid priority regional reserve rural seasonal spare standby transit urgent weekend winter"
).split()

VERBS = "archive assign build check collect compare fetch load merge prepare publish record release submit".split()
THINGS = "bundle card claim entry form label ledger notice plan quote report sample sheet slot".split()

PARAMETERS = "amount bags days hours pieces visits".split()

SETTINGS = (
    "BATCH_SIZE GRACE_DAYS HOLD_HOURS MAX_WEIGHT MIN_STOCK PAGE_ROWS QUEUE_DEPTH RETRY_LIMIT TRIAL_DAYS WARN_LEVEL"
).split()

NUMBERS = range(2, 61)  # values of constants

CONSTANTS = "BASE CAP FLOOR LIMIT MARGIN SHARE SPAN STEP".split()

# name, source, probes; {a} and {b} are constants of the module.
MOULDS = (
    (
        "{noun}_total",
        'def {noun}_total(units):\n    """Return units times {a}, plus {b}."""\n    return units * {a} + {b}',
        ("(0)", "(3)", "(11)"),
    ),
    (
        "{noun}_reach",
        "def {noun}_reach(amount):\n"
        '    """Return amount plus {b}, and twice {a} for a large amount."""\n'
        "    if amount > {a}:\n"
        "        return amount + {b} + 2 * {a}\n"
        "    return amount + {b}",
        ("(1)", "(500)"),
    ),
    (
        "cap_{noun}",
        'def cap_{noun}(amount):\n    """Return amount, but never more than {a}."""\n    return min(amount, {a})',
        ("(1)", "(5000)"),
    ),
    (
        "is_large_{noun}",
        'def is_large_{noun}(amount):\n    """Say whether amount exceeds {a}."""\n    return amount > {a}',
        ("(0)", "(5000)"),
    ),
    (
        "rank_{plural}",
        "def rank_{plural}(amounts):\n"
        '    """Return the amounts above {b}, largest first."""\n'
        "    return sorted((each for each in amounts if each > {b}), reverse=True)",
        ("([])", "([1, 700, 900])"),
    ),
    (
        "{noun}_label",
        "def {noun}_label(number):\n"
        '    """Return the printed label of one {noun}."""\n'
        '    return f"{noun}-{{number + {a}:05d}}"',
        ("(7)", "(1234)"),
    ),
    (
        "count_{plural}",
        "def count_{plural}(names):\n"
        '    """Return how often each name occurs."""\n'
        "    counts = {{}}\n"
        "    for name in names:\n"
        "        counts[name] = counts.get(name, 0) + 1\n"
        "    return counts",
        ('(["a", "b", "a"])', "([])"),
    ),
    (
        "{Noun}Log",
        "class {Noun}Log:\n"
        '    """Amounts of {plural}, added up over a start of {b}."""\n'
        "\n"
        "    def __init__(self):\n"
        "        self.amounts = [{b}]\n"
        "\n"
        "    def add(self, amount):\n"
        "        self.amounts.append(amount)\n"
        "        return self\n"
        "\n"
        "    def total(self):\n"
        "        return sum(self.amounts)",
        ("().total()", "().add(5).add(6).total()"),
    ),
)

FIRST = MOULDS[:2]  # of which a module's first definition is cast

# Calls the first definition of another module, which takes one integer (one of FIRST).
LINK = (
    "{noun}_with_{other}",
    "def {noun}_with_{other}(units):\n"
    '    """Return {b} plus what the {other} side makes of units."""\n'
    "    return {b} + {module}.{function}(units)",
    ("(2)", "(40)"),
)


def cast(mould: tuple[str, str, tuple[str, ...]], **words: object) -> Definition:
    """Fill the words into a mould."""
    name, source, probes = mould
    return Definition(name.format(**words), source.format(**words), tuple(probe.format(**words) for probe in probes))


def arrangements(files: int) -> int:
    """In how many ways `files` different files of a package can be named in order, its own name included."""
    return len(PACKAGES) * perm(len(NOUNS), files)


def make_package(rng: random.Random, size: int) -> Package:
    """A package of `size` modules with two or three definitions each, about 25 lines a module."""
    name = rng.choice(PACKAGES)
    package = Package(name, f"What the {name} runs on.", {})
    for noun in rng.sample(sorted(NOUNS), size):
        plural = NOUNS[noun]
        constants = {f"{noun.upper()}_{word}": rng.choice(NUMBERS) for word in rng.sample(CONSTANTS, 3)}
        first, second, *_ = constants
        if rng.random() < 0.5:  # a near-duplicate that nothing uses any more
            constants[f"{second}_OLD"] = rng.choice(NUMBERS)
        words = {"noun": noun, "plural": plural, "Noun": noun.capitalize(), "a": first, "b": second}
        definitions = [cast(rng.choice(FIRST), **words)]
        definitions += [cast(mould, **words) for mould in rng.sample(MOULDS[2:], rng.randint(1, 2))]
        imports = ()
        if package.modules and rng.random() < 0.6:
            other = rng.choice(list(package.modules.values()))
            other_noun = next(word for word, many in NOUNS.items() if many == other.name)
            function = other.definitions[0].name
            definitions.append(cast(LINK, other=other_noun, module=other.name, function=function, **words))
            imports = (other.name,)
        summary = f"{plural.capitalize()} of the {package.name}."
        package = package.with_module(Module(plural, summary, imports, constants, tuple(definitions)))
    return package
