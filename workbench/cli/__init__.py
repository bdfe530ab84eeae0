"""The command line: ``workbench COMMAND``. Each command reads, calls one public function, and prints; no more."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from .. import __version__
from ..errors import BudgetError, WorkbenchError
from . import options as opt
from .output import complain, console, number, print_json, table

app = typer.Typer(
    name="workbench",
    help="See what a context policy keeps of a saved LLM conversation, and at what price.",
    epilog="In a clone of the project also: setup (make its environment) and test (run all its checks).",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main(argv: list[str] | None = None) -> int:
    """Run one command.

    Returns
    -------
    int
        0; 1 for an error that a person is meant to see, as one line on standard error; 2 for wrong usage.
    """
    argv = list(sys.argv[1:] if argv is None else argv)
    if argv[:1] in (["setup"], ["test"]):
        from .. import __main__ as launcher

        return launcher.main(argv)
    if not argv or argv[0] in ("--", "--no-browser"):
        argv = ["open", *argv]
    lab: list[str] = []
    if argv[0] == "open" and "--" in argv:
        at = argv.index("--")
        argv, lab = argv[:at], argv[at + 1 :]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a lone surrogate in a name must not end the command
    code = 0
    try:
        app(args=argv, prog_name="workbench", obj=lab)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(bool(end.code))
    except WorkbenchError as error:
        complain(error)
        code = 1
    try:
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        print(f"context-workbench {__version__}")
        raise typer.Exit


@app.command("open")
def open_(
    context: typer.Context,
    path: Annotated[Path | None, typer.Argument(help="A saved conversation; by default a sample.", show_default=False)] = None,
    format: opt.Format = None,
    run: opt.Run = None,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the address instead of opening a browser.")] = False,
) -> None:
    """Start JupyterLab on a notebook made for PATH. What follows `--` goes to JupyterLab."""
    from .. import launch

    raise typer.Exit(launch.open_lab(path, format=format, run=run, browser=not no_browser, lab_args=context.obj or []))


@app.command("inspect")
def inspect_(
    paths: opt.Sources,
    json: opt.AsJson = False,
    format: opt.Format = None,
    run: opt.Run = None,
    counter: opt.CounterName = None,
    thread: opt.ThreadId = "main",
    history: opt.WhichHistory = opt.History.full,
) -> None:
    """Show what each file holds: messages, tokens, usage, compactions, and what could not be read."""
    from . import inspect

    found, failed = [], False
    for path in paths:
        try:
            found += [(ledger, inspect.document(ledger, thread, history)) for ledger in inspect.ledgers(path, format, run, counter)]
        except WorkbenchError as error:  # one bad file hides no other
            if len(paths) == 1:
                raise
            complain(error)
            failed = True
    if json:
        print_json({"transcripts": [entry for _, entry in found]})
    else:
        out = console()
        for at, (ledger, entry) in enumerate(found):
            if at:
                out.rule()
            out.print(inspect.picture(ledger, entry))
    if failed:
        raise typer.Exit(1)


@app.command("select")
def select_(
    path: opt.Source,
    json: opt.AsJson = False,
    policy: opt.PolicyNames = None,
    set: opt.Settings = None,
    policy_file: opt.PolicyFile = None,
    max_tokens: opt.MaxTokens = opt.DEFAULT.max_tokens,
    reserve_output_tokens: opt.Reserve = opt.DEFAULT.reserve_output_tokens,
    safety_margin_tokens: opt.Margin = opt.DEFAULT.safety_margin_tokens,
    history: opt.WhichHistory = opt.History.full,
    thread: opt.ThreadId = "main",
    format: opt.Format = None,
    run: opt.Run = None,
    counter: opt.CounterName = None,
) -> None:
    """Show what one policy keeps at one budget, and why."""
    from .. import policies, readers
    from ..ledger import count
    from ..model import Budget
    from . import select

    if policy is not None and len(policy) > 1:
        raise typer.BadParameter("select takes one policy", param_hint="--policy")
    [chosen] = opt.make_policies(policy or [], set or [], policy_file)
    transcript = readers.read(path, format=format, run=run)
    opt.check_thread(transcript, thread)
    budget = Budget(max_tokens, reserve_output_tokens, safety_margin_tokens)
    ledger = count(transcript, counter)
    outcome: policies.Selection | BudgetError
    try:
        outcome = policies.select(ledger, chosen, budget, history=history.value, thread=thread)
    except BudgetError as error:  # a budget that cannot hold is an answer, not a failure
        outcome = error
    if json:
        print_json(select.document(chosen, budget, outcome))
    else:
        out = console()
        out.print(select.picture(transcript.title, chosen, budget, outcome, out.width))


@app.command("compare")
def compare_(
    path: opt.Source,
    json: opt.AsJson = False,
    policy: opt.ComparedNames = None,
    set: opt.Settings = None,
    policy_file: opt.PolicyFile = None,
    max_tokens: opt.MaxTokens = opt.DEFAULT.max_tokens,
    reserve_output_tokens: opt.Reserve = opt.DEFAULT.reserve_output_tokens,
    safety_margin_tokens: opt.Margin = opt.DEFAULT.safety_margin_tokens,
    history: opt.WhichHistory = opt.History.full,
    thread: opt.ThreadId = "main",
    format: opt.Format = None,
    run: opt.Run = None,
    counter: opt.CounterName = None,
) -> None:
    """Show several policies at one budget, and where they part."""
    from .. import policies, readers
    from ..ledger import count
    from ..model import Budget
    from ..policies.registry import SYSTEMS
    from . import compare

    chosen = opt.make_policies(policy or [], set or [], policy_file, SYSTEMS)
    transcript = readers.read(path, format=format, run=run)
    opt.check_thread(transcript, thread)
    budget = Budget(max_tokens, reserve_output_tokens, safety_margin_tokens)
    made = policies.compare(count(transcript, counter), chosen, budget, history=history.value, thread=thread)
    if json:
        print_json(compare.document(made))
    else:
        out = console()
        out.print(compare.picture(transcript.title, made, out.width))


@app.command("policies")
def policies_(json: opt.AsJson = False) -> None:
    """List the policies and their parameters."""
    from . import lists

    document = lists.policies_document()
    if json:
        print_json(document)
        return
    out = console()
    for item in document["policies"]:
        out.print(Text(f"{item['name']}: {item['summary']}", style="bold"))
        out.print(Text("modelled on " + ", ".join(filter(None, (item["origin"], item["version"], item["as_of"], item["evidence"])))))
        rows = [(name, _value(about), about["help"]) for name, about in item["params"].items()]
        out.print(table(["--set", "default>", "what it does"], rows) if rows else Text("no parameters\n"))


def _value(about: dict[str, object]) -> str:
    default = about["default"]
    if default is None:
        return f"follows the {about['follows']} tokens" if about.get("follows") else "–"
    return number(default) if type(default) is int else str(default)


@app.command("formats")
def formats_(json: opt.AsJson = False) -> None:
    """List the formats that can be read."""
    from . import lists

    document = lists.formats_document()
    if json:
        print_json(document)
    else:
        console().print(table(["format", "what it is", "sample"], [(item["name"], item["summary"], item["example"]) for item in document["readers"]]))
