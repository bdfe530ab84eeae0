"""``python3 -m workbench``: makes ``.venv`` on the first run, then hands over to the command line inside it.

Only the standard library is used here, and syntax that an old Python can still read far enough to say what it lacks.
Installed from a wheel there is nothing to make: the command line runs directly.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator

OLDEST = (3, 11)
PACKAGE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(PACKAGE)
STAMP = "workbench-stamp.json"  # in the environment: written last, so an interrupted build has none
BUILDING = "workbench-building"  # in the environment: written first, so that a half-built one is known as ours

#: Settings that would make an installer or an interpreter look or write elsewhere.
ELSEWHERE = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__", "PIP_USER", "PIP_TARGET", "PIP_PREFIX", "PIP_REQUIRE_VIRTUALENV")


class SetupError(Exception):
    """Set-up cannot go on; the message is one line that says what to do."""


def main(argv: "list[str] | None" = None) -> int:
    """Run a command, in the project's own environment if this is a clone of the project. Returns the exit code."""
    argv = list(sys.argv[1:] if argv is None else argv)
    try:
        if sys.version_info < OLDEST:
            raise SetupError("this is Python {}.{}; Python {}.{} or newer is needed".format(*sys.version_info[:2], *OLDEST))
        if not is_clone(ROOT):
            return run_inside(argv)
        python = prepare(ROOT)
    except SetupError as error:
        say(f"workbench: {error}")
        return 1
    except OSError as error:
        say(f"workbench: cannot set up {error.filename or ROOT}: {error.strerror or error}")
        return 1
    except KeyboardInterrupt:
        say("workbench: interrupted; run the same command again to go on")
        return 130
    if argv == ["setup"]:
        say("The environment is ready: {}".format(os.path.join(ROOT, ".venv")))
        return 0
    if same_file(sys.prefix, os.path.join(ROOT, ".venv")):
        return run_inside(argv)
    return hand_over([python, "-m", "workbench", *argv])


def is_clone(root: str) -> bool:
    """True if the package stands in a checkout of this project, not in site-packages."""
    try:
        with open(os.path.join(root, "pyproject.toml"), encoding="utf-8") as file:
            return 'name = "context-workbench"' in file.read()
    except OSError:
        return False


def run_inside(argv: "list[str]") -> int:
    """Run a command with this interpreter, which has (or should have) the dependencies."""
    if argv[:1] == ["test"]:
        from workbench.checks import main as check

        return check(argv[1:])
    if argv[:1] == ["setup"]:
        say(f"Nothing to set up: the workbench is installed in {sys.prefix}")
        return 0
    try:
        from workbench.cli import main as command_line
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] == "workbench":
            raise
        say(f"workbench: {error.name} is not installed for {sys.executable}; install context-workbench with its dependencies")
        return 1
    return command_line(argv)


def hand_over(command: "list[str]") -> int:
    """Become another process, so that signals and the exit code are its own."""
    sys.stdout.flush()
    sys.stderr.flush()
    if os.name != "nt":
        os.execv(command[0], command)
    return subprocess.call(command)  # no exec there: the parent would return at once


def prepare(root: str) -> str:
    """Make or renew the environment of a clone if needed.

    Returns
    -------
    str
        Its interpreter.
    """
    env = os.path.join(root, ".venv")
    if not is_ready(env, root):
        with locked(os.path.join(root, ".venv.lock")):
            if not is_ready(env, root):  # another start may have built it while this one waited
                build(env, root)
    return python_of(env)


def is_ready(env: str, root: str) -> bool:
    """True if a finished environment stands there, made from the present pins, and its Python starts."""
    stamp = read_stamp(env)
    if stamp is None:
        # One that a person made by hand and runs himself is his affair.
        return same_file(sys.prefix, env) and not os.path.exists(os.path.join(env, BUILDING))
    version = version_of(python_of(env))
    return version is not None and version >= OLDEST and stamp == stamp_of(root, version, stamp.get("adopted") is True)


def read_stamp(env: str) -> "dict[str, object] | None":
    """What a finished environment was made from; None if it is not finished or not ours."""
    try:
        with open(os.path.join(env, STAMP), encoding="utf-8") as file:
            stamp = json.load(file)
    except (OSError, ValueError):
        return None
    return stamp if isinstance(stamp, dict) else None


def stamp_of(root: str, version: "tuple[int, int]", adopted: bool) -> "dict[str, object]":
    """What an environment is made from: the two files that decide what is in it, its place, its Python."""
    digest = hashlib.sha256()
    for name in ("pyproject.toml", os.path.join("workbench", "constraints.txt")):
        with open(os.path.join(root, name), "rb") as file:
            digest.update(file.read().replace(b"\r\n", b"\n") + b"\0")
    return {"pins": digest.hexdigest(), "root": os.path.realpath(root), "python": "{}.{}".format(*version), "adopted": adopted}


def version_of(python: str) -> "tuple[int, int] | None":
    """The version of an interpreter, (3, 11); None if it does not start."""
    try:
        said = subprocess.check_output([python, "-I", "-c", "import sys; print(*sys.version_info[:2])"], stderr=subprocess.DEVNULL)
        major, minor = said.split()
        return int(major), int(minor)
    except (OSError, ValueError, subprocess.CalledProcessError):
        return None


def python_of(env: str) -> str:
    """The interpreter of an environment."""
    return os.path.join(env, "Scripts", "python.exe") if os.name == "nt" else os.path.join(env, "bin", "python")


def same_file(one: str, other: str) -> bool:
    """True if both paths exist and lead to the same place."""
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)


@contextlib.contextmanager
def locked(path: str) -> "Iterator[None]":
    """Hold a lock file; wait while another start builds. The system frees it when its holder ends, however it ends."""
    with open(path, "a+b") as file:
        if sys.platform == "win32":
            import msvcrt
            import time

            said = False
            while True:
                try:
                    file.seek(0)
                    msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
                    break
                except OSError:
                    if not said:
                        say("Another start is building the environment; waiting for it.")
                    said = True
                    time.sleep(0.5)
        else:
            import fcntl

            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                say("Another start is building the environment; waiting for it.")
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


def build(env: str, root: str) -> None:
    """Make the environment from nothing, or bring one that a person made up to date. The caller holds the lock."""
    uv = shutil.which("uv")
    python = python_of(env)
    stamp = read_stamp(env)
    ours = (stamp is not None and not stamp.get("adopted")) or os.path.exists(os.path.join(env, BUILDING))
    adopted = not ours and os.path.isdir(env) and bool(os.listdir(env))
    log = os.path.join(env, "install.log")
    if adopted:
        if (version_of(python) or (0, 0)) < OLDEST:
            raise SetupError("{} was not made by the workbench and has no Python {}.{} or newer; move it away, then run again".format(env, *OLDEST))
        say(f"Installing into {env}, which stands here already.")
    else:
        check_modules(["venv"] if uv else ["venv", "ensurepip"])
        say(f"Making the environment in {env} (once; a few minutes, about 1 GB).")
        clear(env)
        os.makedirs(env)
        with open(os.path.join(env, BUILDING), "w", encoding="utf-8") as file:
            file.write("While this file stands here the build is not finished; the next start makes it again.\n")
        base = getattr(sys, "_base_executable", None) or sys.executable
        step([base, "-m", "venv", *(["--without-pip"] if uv else []), env], log, root)
    wanted = ["-c", os.path.join("workbench", "constraints.txt"), "-e", ".[test]"]
    if uv:
        step([uv, "pip", "install", "--python", python, *wanted], log, root)
    else:
        step([python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off", *wanted], log, root)
    with open(os.path.join(env, STAMP + ".new"), "w", encoding="utf-8") as file:
        json.dump(stamp_of(root, version_of(python) or OLDEST, adopted), file)
    os.replace(os.path.join(env, STAMP + ".new"), os.path.join(env, STAMP))
    if not adopted:
        os.remove(os.path.join(env, BUILDING))
    say("The environment is made.")


def check_modules(names: "list[str]") -> None:
    """Some systems split the standard library: say what to install instead of failing half-way."""
    for name in names:
        try:
            __import__(name)
        except ImportError:
            how = "on Debian or Ubuntu: apt install python{}.{}-venv".format(*sys.version_info[:2])
            raise SetupError(f"this Python has no {name} module; install it ({how}) or put uv on the PATH, then run again") from None


def clear(env: str) -> None:
    """Remove an environment; of a link, only the link."""
    try:
        if os.path.islink(env) or os.path.isfile(env):
            os.remove(env)
        elif os.path.isdir(env):
            # The mark goes last: if this is interrupted, what is left is still known as ours.
            for name in sorted(os.listdir(env), key=lambda name: name in (STAMP, BUILDING)):
                path = os.path.join(env, name)
                if os.path.isdir(path) and not os.path.islink(path):
                    shutil.rmtree(path)
                else:
                    os.remove(path)
            os.rmdir(env)
    except OSError as error:
        raise SetupError(f"cannot remove {env}: {error.strerror}; close what uses it, then run again") from None


def step(command: "list[str]", log: str, root: str) -> None:
    """Run one command of set-up: all it says goes to a log, one line at a time is shown, a failure shows the end of the log."""
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE}
    show = Progress()
    with open(log, "a", encoding="utf-8", errors="replace") as file:
        file.write("$ {}\n".format(" ".join(command)))
        with subprocess.Popen(command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
            assert process.stdout is not None
            try:
                for raw in process.stdout:
                    line = raw.decode("utf-8", "replace")
                    file.write(line)
                    show.line(line.strip())
            except BaseException:
                process.terminate()
                raise
            finally:
                show.end()
    if process.returncode:
        with open(log, encoding="utf-8") as file:
            last = [line.rstrip() for line in file if line.strip()][-12:]
        sys.stderr.write("\n".join("  | " + line for line in last) + "\n")
        raise SetupError(f"set-up failed (the lines above are the end of {log}); mend the cause and run the same command again")


class Progress:
    """Shows what the installer is at: one line that is overwritten on a terminal, a line for each download elsewhere."""

    SHOWN = ("Collecting", "Downloading", "Obtaining", "Building", "Installing", "Successfully", "Resolved", "Prepared", "Installed")

    def __init__(self) -> None:
        self.terminal = sys.stderr.isatty()
        self.found = 0

    def line(self, text: str) -> None:
        """Show one line of the installer if it says where it is."""
        if not text.startswith(self.SHOWN):
            return
        self.found += text.startswith("Collecting")
        if self.terminal:
            width = max(20, shutil.get_terminal_size().columns - 8)
            sys.stderr.write(f"\r\033[K{self.found:>4} {text[:width]}")
        elif not text.startswith("Collecting"):
            sys.stderr.write(f"  {text[:160]}\n")
        sys.stderr.flush()

    def end(self) -> None:
        """Leave the terminal as it was."""
        if self.terminal:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def say(text: str) -> None:
    """Tell a person, on standard error: standard output belongs to the command."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
