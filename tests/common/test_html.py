"""Tables for notebooks: what they hold, and that nothing in them is taken for markup."""

from __future__ import annotations

import math

from structlearn._src.common.history import History
from structlearn._src.common.html import facts_table, rows_table


def test_names_and_values_are_text():
    text = facts_table("<b>", {"a & b": "<i>", "n": 1 / 3})
    assert text == (
        "<table><caption>&lt;b&gt;</caption><tr><th>a &amp; b</th><td>&lt;i&gt;</td></tr>"
        "<tr><th>n</th><td>0.333333</td></tr></table>"
    )


def test_long_tables_show_both_ends():
    text = rows_table("", ["i"], [(i,) for i in range(100)])
    shown = [int(x) for x in text.replace("</td>", "<td>").split("<td>") if x.isdigit()]
    assert shown == [*range(6), *range(94, 100)]
    assert text.count("...") == 1


def test_a_history_shows_its_rows_and_leaves_out_what_is_not_known():
    history = History()
    history.add(0, 0.0, 3.0)
    history.add(1, 0.5, math.nan, gradient=0.25)
    text = history._repr_html_()
    assert "History of 2 rows" in text
    assert "<tr><td>1</td><td>0.5</td><td></td><td></td><td>0.25</td><td></td></tr>" in text
