"""The script runs with a PATH of our making, so that it sees only the commands that a test gives it."""

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "tools" / "ensure_java.sh"
BASH = shutil.which("bash")
MESSAGE = """\
Whence needs Java 17 or newer for Spark: {found}.
Install one and put it on the PATH, or set JAVA_HOME to it:
  apt-get install openjdk-17-jre-headless      (Debian, Ubuntu)
  dnf install java-17-openjdk-headless         (Fedora, RHEL)
  brew install openjdk@17                      (macOS)
"""


@dataclass(frozen=True, slots=True)
class Machine:
    bin: Path

    def add_command(self, name: str, body: str) -> Path:
        command = self.bin / name
        command.parent.mkdir(parents=True, exist_ok=True)
        command.write_text(f"#!{BASH}\n{body}\n")
        command.chmod(0o755)
        return command

    def add_java(self, version: str, *, name: str = "java") -> Path:
        return self.add_command(name, java_body(version))

    def add_user(self, uid: int) -> None:
        self.add_command("id", f"echo {uid}")

    def ensure_java(self, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(BASH), str(SCRIPT)],
            env={"PATH": str(self.bin), **environment},
            capture_output=True,
            text=True,
            check=False,
        )


def java_body(version: str) -> str:
    return f"""[ "$*" = -version ] || exit 2
echo 'Picked up JAVA_TOOL_OPTIONS: -Xmx1g' >&2
echo 'openjdk version "{version}" 2025-04-15' >&2
echo 'OpenJDK Runtime Environment (build {version}+6)' >&2"""


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """A machine without Java, apt-get and sudo, whose user is not root."""
    machine = Machine(tmp_path / "bin")
    machine.add_user(1000)
    for name in ("cat", "chmod", "env"):
        (machine.bin / name).symlink_to(str(shutil.which(name)))
    return machine


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", "17"), ("17", "17"), ("21", "21"), ("21.0.8", "21"), ("25-ea", "25")],
)
def test_a_new_enough_java_is_used(machine: Machine, version: str, major: str) -> None:
    java = machine.add_java(version)
    result = machine.ensure_java()
    assert (result.returncode, result.stdout, result.stderr) == (0, f"Java {major}: {java}\n", "")


@pytest.mark.parametrize(
    ("version", "major"),
    [("1.8.0_402", "8"), ("1.8.0-internal", "8"), ("9", "9"), ("11.0.2", "11"), ("16-ea", "16")],
)
def test_an_old_java_is_refused_with_the_packages_to_install(machine: Machine, version: str, major: str) -> None:
    java = machine.add_java(version)
    result = machine.ensure_java()
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == MESSAGE.format(found=f"{java} is Java {major}")


def test_a_missing_java_is_reported(machine: Machine) -> None:
    result = machine.ensure_java()
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr == MESSAGE.format(found="no Java was found")


@pytest.mark.parametrize(
    "body", ["echo 'Unable to locate a Java Runtime.' >&2; exit 1", "echo 'java 17'", f"{java_body('17')}\nexit 1"]
)
def test_a_java_that_does_not_work_is_reported(machine: Machine, body: str) -> None:
    java = machine.add_command("java", body)
    result = machine.ensure_java()
    assert result.returncode == 1
    assert result.stderr == MESSAGE.format(found=f"{java} does not say its version")


def test_java_home_comes_before_the_path(machine: Machine, tmp_path: Path) -> None:
    machine.add_java("11.0.2")
    java = machine.add_java("21.0.8", name="../jdk/bin/java").resolve()
    result = machine.ensure_java(JAVA_HOME=str(tmp_path / "jdk"))
    assert (result.returncode, result.stdout) == (0, f"Java 21: {java}\n")


def test_an_old_java_home_is_refused_even_if_the_path_has_a_newer_one(machine: Machine, tmp_path: Path) -> None:
    machine.add_java("21.0.8")
    machine.add_user(0)
    machine.add_command("apt-get", "echo apt-get ran")
    java = machine.add_java("1.8.0_402", name="../jdk/bin/java").resolve()
    result = machine.ensure_java(JAVA_HOME=str(tmp_path / "jdk"))
    assert result.returncode == 1
    assert result.stderr == MESSAGE.format(found=f"{java} is Java 8")


def add_apt(machine: Machine, *, packages: tuple[str, ...]) -> Path:
    """An apt-get that logs its arguments and, for the packages it has, makes a java appear."""
    log = machine.bin.parent / "apt.log"
    java = machine.bin / "java"
    machine.add_command(
        "apt-get",
        f"""echo "$DEBIAN_FRONTEND $*" >> '{log}'
case "$*" in
update*) exit 0 ;;
{" | ".join(f"*' {package}'" for package in packages) or "''"}) ;;
*) exit 100 ;;
esac
printf '%s\\n' '#!{BASH}' "echo 'openjdk version \\"17.0.15\\"' >&2" > '{java}'
chmod +x '{java}'""",
    )
    return log


INSTALL = "noninteractive install -qq --yes --no-install-recommends"


def test_root_installs_the_package_with_apt(machine: Machine) -> None:
    machine.add_user(0)
    log = add_apt(machine, packages=("openjdk-17-jre-headless",))
    result = machine.ensure_java()
    assert (result.returncode, result.stdout) == (0, f"Java 17: {machine.bin / 'java'}\n")
    assert log.read_text().splitlines() == ["noninteractive update -qq", f"{INSTALL} openjdk-17-jre-headless"]


def test_the_default_java_is_installed_where_17_is_gone(machine: Machine) -> None:
    machine.add_user(0)
    log = add_apt(machine, packages=("default-jre-headless",))
    assert machine.ensure_java().returncode == 0
    assert log.read_text().splitlines()[1:] == [f"{INSTALL} openjdk-17-jre-headless", f"{INSTALL} default-jre-headless"]


def test_a_user_with_passwordless_sudo_installs_the_package(machine: Machine) -> None:
    machine.add_command("sudo", '[ "$1" = -n ] && shift && { [ "$1" = true ] || exec "$@"; }')
    log = add_apt(machine, packages=("openjdk-17-jre-headless",))
    assert machine.ensure_java().returncode == 0
    assert log.exists()


def test_a_user_whose_sudo_asks_for_a_password_is_told_what_to_install(machine: Machine) -> None:
    machine.add_command("sudo", "echo 'sudo: a password is required' >&2; exit 1")
    log = add_apt(machine, packages=("openjdk-17-jre-headless",))
    result = machine.ensure_java()
    assert result.returncode == 1
    assert result.stderr == MESSAGE.format(found="no Java was found")
    assert not log.exists()


def test_a_failed_install_ends_in_the_message(machine: Machine) -> None:
    machine.add_user(0)
    add_apt(machine, packages=())
    result = machine.ensure_java()
    assert result.returncode == 1
    assert result.stderr.endswith(MESSAGE.format(found="no Java was found"))


def test_the_script_can_be_started_by_name() -> None:
    assert os.access(SCRIPT, os.X_OK)
