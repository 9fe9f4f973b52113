"""Configuration of the documentation: ``make docs`` builds it without a network."""

from __future__ import annotations

import contextlib
import inspect
import os
import pathlib
import re
import sys
import warnings
from typing import Any

import sphinx.util.inspect
from docutils import nodes
from latex2mathml.converter import convert

import structlearn

os.environ.setdefault("MPLBACKEND", "Agg")
sys.path.insert(0, str(pathlib.Path(__file__).parent))  # of gallery_style

project = "structlearn"
author = "The structlearn developers"
version = release = structlearn.__version__
copyright = f"{author}, version {version}"

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
autodoc_typehints = "signature"  # and beside every parameter, by _add_types
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
    "subsection_order": [
        f"../examples/{part}" for part in ("sequences", "images", "rules", "states", "inference")
    ],
    "within_subsection_order": "FileNameSortKey",
    "nested_sections": False,
    "reset_modules": ("gallery_style.style",),
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "min_reported_time": 1e9,
    "show_signature": False,
    "write_computation_times": False,
    # Pages of the reference show the examples that use a name, and code in examples links to them.
    "backreferences_dir": "gallery/backreferences",
    "doc_module": ("structlearn",),
    "reference_url": {"structlearn": None},
}
# A picture in a page is made without a window, which matplotlib remarks upon.
warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

html_math_renderer = "mathml"
html_theme = "pydata_sphinx_theme"
html_title = "structlearn"
html_favicon = "_static/logo.svg"
# Pages that explain come before pages that list; the path holds wherever the build is started.
html_search_scorer = str(pathlib.Path(__file__).parent / "_static/scorer.js")
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
    "logo": {
        "text": "structlearn",
        "image_light": "_static/logo.svg",
        "image_dark": "_static/logo.svg",
    },
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
}
#: Pages without others below them.
_ALONE = (
    "index", "install", "start", "theory", "datasets", "faq", "results", "benchmarks",
    "glossary", "architecture", "extending", "references", "changes",
)  # fmt: skip
html_sidebars = {page: [] for page in _ALONE}


def setup(app: Any) -> None:
    """Register the renderer of formulas, and what is left out."""
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    app.connect("html-page-context", _mend_back_links)
    app.connect("autodoc-skip-member", _skip)
    app.connect("autodoc-process-signature", _sign)
    app.connect("autodoc-process-docstring", _add_types, priority=400)  # before numpydoc, at 500
    app.connect("autodoc-process-docstring", _list_references, priority=410)


def _mend_back_links(
    app: Any, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Let "[docs]" beside a source lead to the name by which it is documented."""
    if page.startswith("_modules/") and "body" in context:
        context["body"] = _BACK.sub(_to_documented, context["body"])


def _to_documented(link: re.Match[str]) -> str:
    """Return a link to a name on the page that documents it."""
    name = link[1].rpartition(".")[2]
    _, found, rest = f".{link[2]}.".partition(f".{name}.")
    return f"api/generated/{link[1]}.html#" + (f"{link[1]}.{rest}"[:-1] if found else link[2])


_BACK = re.compile(r"api/generated/([\w.]+)\.html#([\w.]+)")


def _skip(app: Any, what: str, name: str, member: Any, skip: bool, options: Any) -> bool:
    """Leave out what scikit-learn adds to every estimator to pass arguments on."""
    return skip or re.fullmatch(r"set_\w+_request|get_metadata_routing", name) is not None


def _sign(app: Any, what: str, name: str, obj: Any, options: Any, *given: Any) -> Any:
    """Show the signature by which classes are made, and array types by their names alone."""
    text, returned = given
    if what == "class" and (text or "").startswith("(*args"):  # what `__new__` passes on
        made = sphinx.util.inspect.signature(obj, type_aliases=autodoc_type_aliases)
        text = sphinx.util.inspect.stringify_signature(
            made, show_return_annotation=False, unqualified_typehints=True
        )
    return tuple(part and _ALIAS.sub(r"\1", part) for part in (text, returned))


_ALIAS = re.compile(r"TypeAliasForwardRef\('(\w+)'\)")


def _add_types(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Write types and defaults beside the names in the section of parameters."""
    if what not in ("class", "function", "method") or "Parameters" not in lines:
        return
    with contextlib.suppress(TypeError, ValueError):  # what has no signature stays as it is
        known = inspect.signature(obj).parameters
        start = lines.index("Parameters") + 2
        ends = (i for i in range(start, len(lines)) if re.fullmatch(r"-{3,}", lines[i]))
        for i in range(start, next(ends, len(lines) + 1) - 1):
            first = re.match(r"\*{0,2}(\w+)[\w, *]*( : .+)?$", lines[i])
            if first and first[1] in known:
                parameter = known[first[1]]
                kind = first[2] or f" : {_type_of(parameter)}"
                names = first[0].removesuffix(first[2] or "")
                lines[i] = f"{names}{kind}{_default_of(parameter, first[2] or '')}"


def _type_of(parameter: inspect.Parameter) -> str:
    """Return the type as the signature has it."""
    kind = parameter.annotation
    text = kind if isinstance(kind, str) else inspect.formatannotation(kind)
    return "object" if kind is parameter.empty or text in ("Any", "typing.Any") else text


def _default_of(parameter: inspect.Parameter, said: str = "") -> str:
    """Return the default as numpydoc writes it, unless a type is followed by it already."""
    if parameter.default is parameter.empty or "optional" in said or "default" in said:
        return ""
    text = f", default {parameter.default!r}"
    return text if len(text) < _LONGEST_DEFAULT else ""


_LONGEST_DEFAULT = 40  # letters: longer ones are objects, which print badly


def _list_references(
    app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Give every reference an item of a list; "D. Liu" would begin a list from D by itself."""
    if "References" not in lines:
        return
    start = lines.index("References") + 2
    begins = True
    for i in range(start, len(lines)):
        line = lines[i]
        if i + 1 < len(lines) and re.fullmatch(r"-{3,}", lines[i + 1]):
            return  # the next section
        if not line.strip() or line.startswith((" ", "..")):
            begins = True
            continue
        lines[i] = f"- {line.replace('.', chr(92) + '.', 1)}" if begins else f"  {line}"
        begins = line.endswith(".")


# Formulas become MathML here, which browsers draw themselves: pages need nothing from elsewhere.


def _inline(writer: Any, node: Any) -> None:
    writer.body.append(_mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(writer: Any, node: Any) -> None:
    formula = _mathml(node.astext(), "block")
    number = f'<span class="eqno">({node["number"]})</span>' if node.get("number") else ""
    writer.body.append(f'<div class="formula">{number}<div>{formula}</div></div>')
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
