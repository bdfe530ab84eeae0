"""The options that commands share, and what they stand for."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from .. import policies
from ..errors import PolicyError, ReadError
from ..ledger import Ledger
from ..model import Budget, Transcript
from ..policies import Policy

_FILE_LIMIT = 1_000_000  # bytes; a policy file holds a name and a few parameters


class History(StrEnum):
    """Which of the two histories after a real compaction."""

    full = "full"
    live = "live"


Source = Annotated[Path, typer.Argument(help="A saved conversation.", show_default=False)]
Sources = Annotated[list[Path], typer.Argument(help="Saved conversations.", show_default=False)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Format = Annotated[str | None, typer.Option("--format", metavar="NAME", help="Read as this format instead of detecting it.", show_default=False)]
CounterName = Annotated[str | None, typer.Option("--counter", metavar="NAME", help="Token counter; by default the model's.", show_default=False)]
ThreadId = Annotated[str, typer.Option("--thread", metavar="ID", help="Thread to act on.")]
Run = Annotated[str | None, typer.Option("--run", metavar="ID|N", help="A run of a file that holds many: its id, or its place from 0.", show_default=False)]
MaxTokens = Annotated[int, typer.Option("--max-tokens", metavar="N", min=0, help="The context window, in tokens.")]
Reserve = Annotated[int, typer.Option("--reserve-output-tokens", metavar="N", min=0, help="Kept free for the answer.")]
Margin = Annotated[int, typer.Option("--safety-margin-tokens", metavar="N", min=0, help="Kept free for the error of the estimate.")]
PolicyNames = Annotated[list[str] | None, typer.Option("--policy", metavar="NAME", help="See the command policies. Default: scv.", show_default=False)]
ComparedNames = Annotated[
    list[str] | None, typer.Option("--policy", metavar="NAME", help="May be given several times. Default: the four systems.", show_default=False)
]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="FIELD=VALUE", help="A parameter of the policy, or POLICY.FIELD=VALUE.", show_default=False)
]
PolicyFile = Annotated[
    Path | None, typer.Option("--policy-file", metavar="FILE", help='JSON or TOML: {"policy": NAME, "params": {FIELD: VALUE}}.', show_default=False)
]
WhichHistory = Annotated[History, typer.Option("--history", help="All that was said, or what the model had after the last real compaction.")]

DEFAULT = Budget()


def make_policies(names: Sequence[str], settings: Sequence[str], file: Path | None, default: Sequence[str] = ("scv",)) -> list[Policy]:
    """The policies that the options ask for, else the default ones: the file's parameters, and over them those of ``--set``.

    Raises
    ------
    PolicyError
        A policy, a parameter or the file is not as it should be.
    """
    made = dict.fromkeys(names, None) if names else {}
    from_file: dict[str, dict[str, Any]] = {}
    if file is not None:
        name, params = read_policy_file(file)
        from_file[name] = params
        if not made:
            made[name] = None
        elif name not in made:
            raise PolicyError(f"{file.name} is for policy {name!r}, but --policy asks for {', '.join(made)}; give one of them")
    wanted = list(made) or list(default)
    typed: dict[str, dict[str, str]] = {name: {} for name in wanted}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{setting!r} is not FIELD=VALUE", param_hint="--set")
        name, _, field = key.strip().rpartition(".")
        if name and name not in typed:
            raise PolicyError(f"--set {key.strip()}: no policy {name!r} is chosen; chosen: {', '.join(wanted)}")
        for chosen in [name] if name else wanted:
            typed[chosen][field] = value
    return [policies.make_from_text(policies.make(name, **from_file.get(name, {})), typed[name]) for name in wanted]


def read_policy_file(path: Path) -> tuple[str, dict[str, Any]]:
    """A policy's name and parameters from a JSON or TOML file. Nothing else may stand in it.

    Raises
    ------
    PolicyError
        It cannot be read, or is no such document.
    """
    try:
        with path.open("rb") as file:
            raw = file.read(_FILE_LIMIT + 1)
    except OSError as error:
        raise PolicyError(f"{path}: cannot be read ({error.strerror}); give a JSON or TOML file") from None
    if len(raw) > _FILE_LIMIT:
        raise PolicyError(f"{path}: larger than a policy file can be ({_FILE_LIMIT:,} bytes)")
    try:
        text = raw.decode("utf-8-sig")
        document = tomllib.loads(text) if path.suffix.lower() == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise PolicyError(f"{path}: neither JSON nor TOML that can be read ({error or 'nested too deep'}); the name of a TOML file ends in .toml") from None
    if not isinstance(document, dict) or not isinstance(document.get("policy"), str):
        raise PolicyError(f'{path}: no "policy"; write {{"policy": "scv", "params": {{…}}}}')
    params = document.get("params", {})
    unknown = sorted(set(document) - {"policy", "params"})
    if unknown or not isinstance(params, dict):
        raise PolicyError(f'{path}: {f"{unknown[0]!r} is not known here" if unknown else "params is no object"}; write {{"policy": "scv", "params": {{…}}}}')
    return document["policy"], params


def check_thread(transcript: Transcript, thread: str) -> None:
    """See that a transcript has a thread.

    Raises
    ------
    ReadError
        It has not; the message lists those it has.
    """
    known = [item.id for item in transcript.threads]
    if thread not in known:
        shown = ", ".join(repr(name) for name in known[:10]) + (", …" if len(known) > 10 else "")
        raise ReadError(f"{transcript.name}: no thread {thread!r}; it has {shown}")


def counter_document(ledger: Ledger, thread: str, history: History) -> dict[str, Any]:
    """The counter and the range in which the true total is expected."""
    view = ledger.view(thread, history.value)
    return {"id": ledger.counter.id, "label": ledger.counter.label, "exact": ledger.counter.exact, "low": view.low, "high": view.high}
