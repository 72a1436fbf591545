"""A figure carries the sentence that says the same in words."""

from __future__ import annotations

import pytest

from modtools.errors import UsageError
from modtools.figures import Figure, canvas


def _figure(alt: str = 'Success: coarse 0.62, "fine" <0.67> [n = 48].') -> Figure:
    with canvas() as (drawing, axes):
        axes.plot([1, 2], [0.62, 0.67])
    return Figure(drawing, alt)


def test_jupyter_gets_the_picture_with_its_alt_text_and_the_sentence_alone():
    bundle = _figure()._repr_mimebundle_()
    assert bundle["text/plain"] == 'Success: coarse 0.62, "fine" <0.67> [n = 48].'
    alt = 'alt="Success: coarse 0.62, &quot;fine&quot; &lt;0.67&gt; [n = 48]."'
    assert bundle["text/html"].startswith(f'<img {alt} src="data:image/png;base64,')


def test_the_same_drawing_gives_the_same_bytes(tmp_path):
    for kind, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        first, second = (_figure().save(tmp_path / f"{name}.{kind}").read_bytes() for name in "ab")
        assert first == second and first.startswith(start)


def test_markdown_escapes_what_would_end_the_alt_text():
    assert _figure("a [b]\nc").markdown("figures/x y.svg") == "![a \\[b\\] c](<figures/x y.svg>)"


def test_a_figure_without_alt_text_is_refused():
    with pytest.raises(UsageError, match="alt text"):
        _figure("  ")


def test_a_canvas_leaves_the_users_settings_alone():
    import matplotlib

    before = dict(matplotlib.rcParams)
    _figure()
    assert dict(matplotlib.rcParams) == before
