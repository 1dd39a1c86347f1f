"""Prints what a component's image depends on, as requirements: `python images/dependencies.py relay`."""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]
print(*project["dependencies"], *project["optional-dependencies"][sys.argv[1]], sep="\n")
