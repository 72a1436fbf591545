"""From a schema or a pattern to the tokens that are allowed next: byte automata, and masks over a vocabulary."""

from modtools.masking.budget import BudgetError
from modtools.masking.document import SchemaError
from modtools.masking.grammar import Grammar, compile_json_schema, compile_regex
from modtools.masking.pattern import PatternError
from modtools.masking.restrictions import NOT_HONOURED, RESTRICTIONS, NotHonoured, Restriction
from modtools.masking.vocabulary import Vocabulary

__all__ = [
    "NOT_HONOURED",
    "RESTRICTIONS",
    "BudgetError",
    "Grammar",
    "NotHonoured",
    "PatternError",
    "Restriction",
    "SchemaError",
    "Vocabulary",
    "compile_json_schema",
    "compile_regex",
]
