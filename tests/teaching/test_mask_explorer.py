"""The pure core of the mask explorer, and the automaton that is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from modtools.errors import UsageError
from modtools.masking import Vocabulary, compile_json_schema, compile_regex
from modtools.teaching.automaton_figure import MAX_STATES, automaton_figure, reachable
from modtools.teaching.cost_figure import cost_figure
from modtools.teaching.mask_explorer import (
    END,
    NO_MODEL,
    explore,
    mask_explorer,
    mask_html,
    mask_text,
    next_probabilities,
    straddles,
)

CLOSED = {
    "type": "object",
    "properties": {"path": {"type": "string"}},
    "required": ["path"],
    "additionalProperties": False,
}
WORDS = [b'"}', b'":"', b"path", b"pat", b'a"', b'{"', b"\xc3", b"    ", b'", "b', b"<b>"]


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary.from_bytes([b"", b"", *(bytes([byte]) for byte in range(256)), *WORDS], eos_id=0, special_ids=[1])


@pytest.fixture(scope="module")
def grammar():
    return compile_json_schema(CLOSED, whitespace=4)


def by_trial(grammar, vocabulary: Vocabulary, prefix: bytes) -> int:
    """How many tokens are allowed, each tried by itself."""
    state = grammar.start.read(prefix)
    return sum(bool(t) and state.read(t) is not None for t in vocabulary.tokens) + state.is_accepting


@pytest.mark.parametrize("prefix", ["", "{", '{"', '{"path', '{"path": "é', '{"path": "a"', '{"path": "a"}'])
def test_the_number_of_allowed_tokens_is_the_mask_s(grammar, vocabulary, prefix):
    view = explore(grammar, vocabulary, prefix)
    assert (view.refused, view.of) == ("", len(vocabulary))
    assert view.allowed == by_trial(grammar, vocabulary, prefix.encode())
    assert view.may_end == grammar.accepts(prefix.encode())


def test_a_prefix_that_left_the_language_says_where_and_shows_no_mask(grammar, vocabulary):
    view = explore(grammar, vocabulary, '{"other')
    assert "byte 2 ('o')" in view.refused and view.allowed == 0 and view.state == ""
    assert "refused" in mask_html(view) and "refused" in mask_text(view)


def test_tokens_that_close_a_part_and_go_on_are_listed(grammar, vocabulary):
    assert explore(grammar, vocabulary, '{"path": "a').straddling == ("'\"}'",)
    assert explore(grammar, vocabulary, '{"path').straddling == ("'\":\"'",)
    assert explore(grammar, vocabulary, '{"path": "a"').straddling == ()


def test_a_token_that_only_reaches_a_boundary_does_not_straddle_it(grammar):
    inside = grammar.start.read(b'{"path": "a')
    assert not straddles(inside, b'b"') and straddles(inside, b'b"}') and not straddles(inside, b"bc")


def test_the_mass_is_the_allowed_tokens_share_and_the_rest_is_shared_out_anew(grammar, vocabulary):
    probabilities = np.full(len(vocabulary) + 3, 1e-6)  # a network's head may be wider than the vocabulary
    pat, path, other = (vocabulary.tokens.index(word) for word in (b"pat", b"path", b"<b>"))
    probabilities[[pat, path, other]] = 0.1, 0.3, 0.6
    view = explore(grammar, vocabulary, '{"', probabilities, most=2)
    assert view.mass == pytest.approx(0.4 + 1e-6)  # the byte p is allowed too
    assert [(t.token, t.allowed) for t in view.before] == [("'<b>'", False), ("'path'", True)]
    assert [t.probability for t in view.after] == pytest.approx([0.75, 0.25], abs=1e-4)
    with pytest.raises(UsageError, match="expected one a token"):
        explore(grammar, vocabulary, '{"', probabilities[:5])


@pytest.mark.parametrize(
    ("prefix", "token", "verdict"),
    [
        ('{"path": "a', '"}', "may follow, then: after the value"),
        ('{"path": "a', "\n", "refused: byte 11 ('\\n') cannot follow; one of 95 printable characters can"),
        ('{"', "other", "refused: byte 2 ('o') cannot follow; one of 'p' can (no single token"),
        ('{"', "path", "may follow, then: in a key that may become 'path'"),
        ('{"path": "a"', END, "refused: the text ends too early; one of ' }' must follow"),
        ('{"path": "a"}', END, "may follow: the document is complete"),
    ],
)
def test_a_token_is_judged_with_a_reason(grammar, vocabulary, prefix, token, verdict):
    assert explore(grammar, vocabulary, prefix, token=token).verdict.startswith(verdict)


def test_a_readable_token_that_leads_into_a_dead_end_is_refused_for_that():
    letters, poor = compile_regex("(ab)*"), Vocabulary.from_bytes([b"a", b"ab", b"ba", b""], eos_id=3)
    assert "no document can be finished" in explore(letters, poor, "", token="a").verdict
    assert explore(letters, poor, "", token="ab").verdict.startswith("may follow")


def test_the_page_says_that_there_is_no_model_and_escapes_tokens(grammar, vocabulary):
    probabilities = np.full(len(vocabulary), 1.0 / len(vocabulary))
    assert NO_MODEL in mask_html(explore(grammar, vocabulary, '{"path": "a'))
    page = mask_html(explore(grammar, vocabulary, '{"path": "a', probabilities, token="<b>", most=300))
    assert NO_MODEL not in page and "<b>" not in page and "&lt;b&gt;" in page and "(refused)" in page


def test_the_slider_steps_back_and_the_grammar_can_be_changed(grammar, vocabulary):
    grammars = {"closed": grammar, "letters": compile_regex("(ab)*")}
    box = mask_explorer(grammars, vocabulary, '{"path": "a')
    choice, prefix, left_off, token, page = box.children
    assert "inside a string" in page.value
    left_off.value = 5
    assert "in a key that may become" in page.value and f"2 of {len(vocabulary)} tokens" in page.value
    token.value = "x"
    assert "your token" in page.value and "cannot follow" in page.value
    choice.value, prefix.value, left_off.value = "letters", "ab", 0
    assert "<td" in page.value and "inside the pattern" in page.value


def test_the_model_s_distribution_follows_the_prompt_and_the_prefix(need):
    from modtools.models import Message, load_model
    from modtools.models.fetch import model_path

    need(model_path() is not None, "the embedded model in its cache")
    model = load_model("embedded-base", device="cpu", dtype="float32")
    ask = [Message("user", "Hello")]
    first = next_probabilities(model, ask, "Good")
    assert first.sum() == pytest.approx(1) and (first >= 0).all()
    (good,), (token,) = model.prompter.encode_text("Good"), model.prompter.encode_text(" morning")
    score = model.score(ask, "Good morning")
    assert score.token_ids == (good, token)
    assert np.log(first[token]) == pytest.approx(score.logprobs[1], abs=1e-3)


def test_an_automaton_is_drawn_with_every_arrow_in_words():
    figure = automaton_figure(compile_regex("(ab)*"), "ab")
    assert figure.alt == "3 states, start 0, may end in 0, 2. 0 reads a to 1; 1 reads b to 2; 2 reads a to 1."
    loops = automaton_figure(compile_regex("a(a|b)*b"), "ab")
    assert "2 reads a to 2" in loops.alt and loops._repr_mimebundle_()["text/html"].startswith("<img alt=")


def test_an_automaton_too_large_to_read_is_refused():
    with pytest.raises(UsageError, match=f"more than {MAX_STATES} states"):
        reachable(compile_regex("a{20}"), "a")


def test_costs_are_drawn_with_their_numbers_in_words():
    figure = cost_figure({"wide": {"walk": 84_123.0, "split": 0.08712}, "narrow": {"walk": 66.0}}, "microseconds")
    assert figure.alt == "Cost in microseconds. wide: walk 84,100, split 0.0871; narrow: walk 66."
    assert figure.drawing.axes[0].get_xscale() == "log"
    with pytest.raises(UsageError, match="above 0"):
        cost_figure({"wide": {"walk": 0.0}}, "microseconds")
