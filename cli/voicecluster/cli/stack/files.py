"""A plan's volumes as directories."""

import shutil
from pathlib import Path

from voicecluster.cli.state import private_directory, write_private
from voicecluster.operator.plan.process import Plan


def write_volumes(plan: Plan, root: Path) -> None:
    """Make `root` contain exactly the plan's volumes, one directory each. Call before any process starts."""
    shutil.rmtree(root, ignore_errors=True)
    for volume in plan.volumes:
        private_directory(root / volume.name)
        for name, text in volume.files.items():
            write_private(root / volume.name / name, text)
