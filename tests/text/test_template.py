"""Templates of CRF++."""

from __future__ import annotations

import pytest

from structlearn._src.common.errors import FormatError
from structlearn._src.text.template import check_width, parse_template, read_template


def test_the_default_is_the_chunking_template():
    template = parse_template()
    assert len(template.unigram) == 19
    assert template.bigram == ()
    assert template.transitions
    assert (template.width, template.reach) == (2, 2)
    assert template.unigram[5].fill(("a", "b")) == "U05:a/b"


def test_rows_have_text_and_macros():
    template = parse_template("# note\n\nU1:a%x[-3,0]/%x[+1,12]b \r\nU\nB\nB7:%x[0,1]\n")
    first, empty = template.unigram
    assert first.literals == ("U1:a", "/", "b")
    assert first.macros == ((-3, 0), (1, 12))
    assert first.fill(("x", "y")) == "U1:ax/yb"
    assert (empty.literals, empty.macros) == (("U",), ())
    assert [row.literals for row in template.bigram] == [("B7:", "")]
    assert template.transitions
    assert (template.width, template.reach) == (13, 3)
    assert not parse_template("B7:%x[0,1]").transitions


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no line"),
        ("# U1:%x[0,0]\n", "there is no line"),
        ("U1:%x[0,0]\nX2:%x[0,0]", "line 2: 'X2:%x\\[0,0\\]' must begin with U, B"),
        ("U1:%x[0,0]/%x[1", "line 1: '%x\\[1' is not a macro"),
        ("U1:%x[0,-1]", "line 1: '%x\\[0,-1\\]' is not a macro"),
        ("\n\nB:%X[0,0]", "line 3: '%X\\[0,0\\]' is not a macro"),
        ("U1:100%", "line 1: '%' is not a macro"),
    ],
)
def test_wrong_templates_are_named(tmp_path, text, words):
    with pytest.raises(FormatError, match=f"template.*{words}"):
        parse_template(text)
    path = tmp_path / "mine.template"
    path.write_text(text)
    with pytest.raises(FormatError, match=f"mine.template.*{words}"):
        read_template(path)


def test_template_files(tmp_path):
    path = tmp_path / "mine"
    path.write_bytes(b"\xef\xbb\xbfU\xc3\xa9:%x[0,0]\n")
    assert read_template(path).unigram[0].literals == ("Ué:", "")
    path.write_bytes(b"U\xff:%x[0,0]\n")
    with pytest.raises(FormatError, match="mine: the template is not UTF-8"):
        read_template(path)


def test_a_missing_column_is_named():
    template = parse_template("U1:%x[0,0]\nB2:%x[-1,2]")
    check_width(template, 3)
    with pytest.raises(FormatError, match=r"B2:%x\[-1,2\] names column 2 .* has 2 columns.*; give"):
        check_width(template, 2)
