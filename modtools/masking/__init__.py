"""From a schema, a pattern or a grammar to the tokens that are allowed next: byte automata, and masks over a vocabulary."""

from modtools.masking.budget import BudgetError
from modtools.masking.context_free import compile_grammar
from modtools.masking.document import SchemaError
from modtools.masking.ebnf import GrammarError
from modtools.masking.grammar import Grammar, compile_json_schema, compile_regex
from modtools.masking.pattern import PatternError
from modtools.masking.restrictions import NOT_HONOURED, RESTRICTIONS, NotHonoured, Restriction
from modtools.masking.vocabulary import Vocabulary

__all__ = [
    "NOT_HONOURED",
    "RESTRICTIONS",
    "BudgetError",
    "Grammar",
    "GrammarError",
    "NotHonoured",
    "PatternError",
    "Restriction",
    "SchemaError",
    "Vocabulary",
    "compile_grammar",
    "compile_json_schema",
    "compile_regex",
]
