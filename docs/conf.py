"""How `make docs` builds the site: Sphinx on the pages of this folder, nothing from outside."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

from dipedl import __version__  # noqa: E402

project = "dipedl"
author = "The dipedl developers"
copyright = "The dipedl developers, Apache-2.0"
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "matplotlib.sphinxext.plot_directive",
    "numpydoc",
    "myst_parser",
    "sphinx_design",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "public_names",  # the extensions from here on are those of _ext
    "commands",
    "all_methods",
    "repository_files",
    "long_tables",
    "mathml",
]
source_suffix = {".rst": "restructuredtext", ".md": "markdown", ".myst": "markdown"}
exclude_patterns = ["_build"]
templates_path = ["_templates"]
default_role = "py:obj"
language = "en"
smartquotes = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_links_external_new_tab = False

autosummary_generate_overwrite = True
toc_object_entries_show_parents = "hide"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

plot_formats = ["svg"]
plot_html_show_formats = False
plot_html_show_source_link = False
plot_rcparams = {"figure.dpi": 96, "svg.hashsalt": "dipedl"}
plot_apply_rcparams = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "within_subsection_order": "gallery_order.SimpleFirst",
    "filename_pattern": "/plot_",
    "doc_module": ("dipedl",),
    "backreferences_dir": "gallery/backreferences",
    "reference_url": {"dipedl": None},
    "download_all_examples": False,
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 10,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = f"dipedl {release}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_js_files = [("tables.js", {"defer": "defer"})]
html_search_scorer = str(HERE / "_static" / "search_order.js")
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
html_copy_source = False
html_show_sphinx = False
html_sidebars = {"comparison": [], "contributing": [], "gallery/**": []}
html_theme_options = {
    "logo": {"text": "dipedl"},
    "show_prev_next": True,
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
