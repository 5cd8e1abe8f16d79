"""Configuration of Sphinx: `make docs` builds the site."""

import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE / "extensions"), str(HERE.parent / "pipelines")]

import recordspec  # noqa: E402

# Sphinx reads what is in its folder. The outputs of notebooks are those that stand in them, of a run that a
# test repeats.
shutil.copytree(HERE.parent / "notebooks", HERE / "notebooks", dirs_exist_ok=True)
nb_execution_mode = "off"

project = "recordspec"
author = "the developers of recordspec"
copyright = author  # noqa: A001  the name that Sphinx reads
version = release = recordspec.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "generated",
    "screenshots",
]
exclude_patterns = ["extensions"]

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
# `name` in a docstring is code, as in Markdown.
default_role = "code"
# Quotes and dots only: two hyphens begin an option of a command.
smartquotes_action = "qe"

autodoc_member_order = "bysource"
# It is not in the environment of the documentation.
autodoc_mock_imports = ["ray"]
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
napoleon_google_docstring = True
napoleon_use_rtype = False
napoleon_use_ivar = True
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = False

html_theme = "furo"
html_title = f"recordspec {version}"
html_logo = html_favicon = "static/logo.svg"
html_show_sphinx = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
copybutton_prompt_text = "$ "
copybutton_line_continuation_character = "\\"
