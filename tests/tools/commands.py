"""Scripts run with a PATH of a test's making, so that they see only the commands that it gives them."""

import shutil
import subprocess
from pathlib import Path

TOOLS = Path(__file__).parents[2] / "tools"
BASH = shutil.which("bash")


def add(commands: Path, name: str, body: str) -> None:
    (commands / name).write_text(f"#!{BASH}\n{body}\n")
    (commands / name).chmod(0o755)


def run(script: str, commands: Path) -> tuple[int, str, str]:
    done = subprocess.run(
        [str(BASH), str(TOOLS / script)], env={"PATH": str(commands)}, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout, done.stderr
