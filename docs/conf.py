"""Configuration of the documentation: ``make docs`` builds it without a network."""

from __future__ import annotations

import os
import re
import warnings
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert

import structlearn

os.environ.setdefault("MPLBACKEND", "Agg")

project = "structlearn"
author = "The structlearn developers"
copyright = author
version = release = structlearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = [
    "sg_execution_times.rst",
    "_build",
    "gallery/**/*.ipynb",
    "gallery/**/*.py",
    "gallery/**/*.md5",
]
templates_path = ["_templates"]
default_role = "code"
nitpicky = False

myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "both"  # in the signature, and beside every parameter
autodoc_typehints_description_target = "documented"
autodoc_typehints_format = "short"
# Array types by their names, which say more than what they stand for.
autodoc_type_aliases = {name: name for name in ("Floats", "Ints", "Bools", "PathLike")}
python_use_unqualified_type_names = True
maximum_signature_line_length = 90
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_xref_param_type = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"plot_",
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "write_computation_times": False,
}
# A picture in a page is made without a window, which matplotlib remarks upon.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "structlearn"
html_static_path = ["_static"]
html_css_files = ["page.css"]
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
html_show_sourcelink = False
html_show_sphinx = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "logo": {"text": "structlearn"},
    "header_links_before_dropdown": 6,
}
#: Pages without others below them.
_ALONE = (
    "install", "start", "datasets", "faq", "glossary",
    "architecture", "extending", "references", "changes",
)  # fmt: skip
html_sidebars = {page: [] for page in _ALONE}


# Formulas become MathML here, which browsers draw themselves: pages need nothing from elsewhere.


def setup(app: Any) -> None:
    """Register the renderer of formulas, and what is left out."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("autodoc-skip-member", _skip)


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn adds to every estimator to pass arguments on."""
    return skip or re.fullmatch(r"set_\w+_request|get_metadata_routing", name) is not None


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    formula = _mathml(node.astext(), "block")
    writer.body.append(f'<div style="margin: 1em 0; overflow-x: auto">{formula}</div>')
    raise nodes.SkipNode


def _mathml(formula: str, display: str) -> str:
    text = convert(formula, display=display)
    if display == "block":  # what a maximum is over goes below it
        text = _LIMITS.sub(r"<munder>\1\2</munder>", text)
    text = text.replace("<mi>&#x0007E;</mi>", "<mo>&#x0223C;</mo>")  # "distributed as", with room
    space = '<mspace width="0.17em"/>'
    return re.sub(r"<mi>(?:log|exp|max)</mi>", rf"{space}\g<0>{space}", text)


_LIMITS = re.compile(
    r"<msub>(<mo>(?:max|min|lim|argmax|argmin)</mo>)"
    r"(<mrow>(?:(?!</?mrow>).)*</mrow>|<mi>[^<]*</mi>)</msub>"
)
