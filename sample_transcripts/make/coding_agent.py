"""coding_agent.jsonl: plays coding_agent_story.txt in the World and writes the session as Claude Code 2.x does."""

from __future__ import annotations

import json
from typing import Any

from common import HERE, Clock, blob, claude, compact, dump_lines, files, ident, number, sections, uuid
from world import Result, World, load_recorded

ROOT = "/home/dev/tallyport"
SESSION = uuid("coding", "session")
MODEL = "claude-sonnet-4-5-20250929"
#: System prompt and tool schemas, which a session file does not hold; most of it is in the cache from an earlier session.
FIXED, FIXED_WARM = 14_812, 11_904
CACHE_LIFE_MS = 300_000
RECORDED = HERE / "coding_agent_shell.json"

Call = tuple[str, dict[str, Any], str]  # name, input, body for the world


class Session:
    """Writes lines and keeps the books: which tokens stand before each response."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rows: list[dict[str, Any]] = []
        self.clock = Clock("2026-03-17T08:41:12")
        self.parent: dict[str, str | None] = {"main": None}
        self.context = {"main": FIXED}
        self.cached = {"main": FIXED_WARM}
        self.last_call = {"main": self.clock.ms}
        self.count = 0
        self.prompt_id = ""

    def line(self, thread: str, kind: str, ms: int, **body: Any) -> dict[str, Any]:
        self.count += 1
        name = uuid("coding", self.count)
        row = {
            "parentUuid": self.parent[thread],
            "isSidechain": thread != "main",
            "userType": "external",
            "cwd": ROOT,
            "sessionId": SESSION,
            "version": "2.0.76",
            "gitBranch": "fix/two-currencies",
            **({"agentId": thread} if thread != "main" else {}),
            "type": kind,
            **body,
            "uuid": name,
            "timestamp": self.clock.tick(ms),
        }
        self.parent[thread] = name
        self.rows.append(row)
        return row

    def user(self, text: str, thread: str = "main", **flags: Any) -> None:
        self.context[thread] += claude(text) + 4
        if thread == "main" and not flags:
            self.prompt_id = uuid("prompt", self.count)
        body = {"message": {"role": "user", "content": text}, **flags}
        if not flags:
            body["promptId"] = self.prompt_id
        self.line(thread, "user", 3, **body)

    def assistant(self, think: str, text: str, calls: list[Call], thread: str = "main", interleave: bool = False) -> None:
        blocks: list[dict[str, Any]] = []
        output = 0
        if think:
            blocks.append({"type": "thinking", "thinking": think, "signature": blob(180 + number(0, 90, think), think)})
            output += claude(think)
        if text:
            blocks.append({"type": "text", "text": text})
            output += claude(text)
        for name, arguments, _ in calls:
            blocks.append({"type": "tool_use", "id": ident("toolu_01", 22, self.count, len(blocks)), "name": name, "input": arguments})
            output += claude(compact(arguments)) + 32
        output += 3
        usage = self._usage(thread, output)
        self.context[thread] += output + 4 * len(blocks)
        head = {"id": ident("msg_01", 22, self.count), "type": "message", "role": "assistant", "model": MODEL}
        request = ident("req_011C", 20, self.count)
        pending = list(calls)
        results = []
        for at, block in enumerate(blocks):
            last = at == len(blocks) - 1
            shown = {**usage, "output_tokens": output if last else min(output, 1 + 7 * at + number(0, 4, self.count))}
            stop = ("tool_use" if calls else "end_turn") if last else None
            message = {**head, "content": [block], "stop_reason": stop, "stop_sequence": None, "usage": shown}
            row = self.line(thread, "assistant", 900 + 14 * len(compact(block)) // 4, message=message, requestId=request)
            if block["type"] == "tool_use":
                results.append((block["id"], pending.pop(0), row["uuid"]))
                if interleave:
                    self._result(thread, *results.pop())
        for item in results:
            self._result(thread, *item)
        self.last_call[thread] = self.clock.ms

    def _usage(self, thread: str, output: int) -> dict[str, Any]:
        prompt = self.context[thread]
        cold = self.clock.ms - self.last_call[thread] > CACHE_LIFE_MS
        read = FIXED_WARM if cold else min(self.cached[thread], prompt)
        fresh = number(3, 8, "fresh", prompt)
        self.cached[thread] = prompt - fresh
        written = prompt - fresh - read
        return {
            "input_tokens": fresh,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": read,
            "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": output,
            "service_tier": "standard",
        }

    def _result(self, thread: str, call_id: str, call: Call, source: str) -> None:
        name, arguments, body = call
        result = self.side(call_id, body) if name == "Task" else run(self.world, name, arguments, body)
        content: Any = result.text
        if name == "Task":
            content = [{"type": "text", "text": result.text}]
        block = {"tool_use_id": call_id, "type": "tool_result", "content": content}
        if name == "Bash" or result.error:
            block["is_error"] = result.error
        self.context[thread] += claude(result.text) + 12
        message = {"role": "user", "content": [block]}
        self.line(thread, "user", result.ms, message=message, toolUseResult=result.structured, sourceToolAssistantUUID=source)

    def side(self, call_id: str, body: str) -> Result:
        """The subagent: a thread of its own that stands inline."""
        steps = json.loads(body)
        agent = digest_agent(call_id)
        self.parent[agent], self.context[agent], self.cached[agent] = None, 9_140, 0
        self.last_call[agent] = self.clock.ms
        started, first = self.clock.ms, len(self.rows)
        self.user(steps[0]["text"], agent)
        for step in steps[1:]:
            self.assistant(step["think"], step["text"], [tuple(call) for call in step["calls"]], agent)
        final = steps[-1]["text"]
        lines = [row for row in self.rows[first:] if row["type"] == "assistant"]
        usage = lines[-1]["message"]["usage"]
        total = usage["input_tokens"] + usage["cache_creation_input_tokens"] + usage["cache_read_input_tokens"] + usage["output_tokens"]
        structured = {
            "status": "completed",
            "prompt": steps[0]["text"],
            "agentId": agent,
            "content": [{"type": "text", "text": final}],
            "totalDurationMs": self.clock.ms - started,
            "totalTokens": total,
            "totalToolUseCount": sum(len(step["calls"]) for step in steps[1:]),
            "usage": usage,
        }
        return Result(final, structured, ms=35)

    def compact(self, summary: str, kept_note: str) -> None:
        before = self.context["main"]
        logical = self.parent["main"]
        self.parent["main"] = None
        meta = {"trigger": "manual", "preTokens": before}
        self.line(
            "main", "system", 9_400, subtype="compact_boundary", content=kept_note, isMeta=False, level="info", logicalParentUuid=logical, compactMetadata=meta
        )
        self.context["main"] = FIXED
        self.cached["main"] = FIXED_WARM
        self.user(summary, isCompactSummary=True, isVisibleInTranscriptOnly=True)

    def bare(self, **row: Any) -> None:
        self.rows.append(row)


def digest_agent(call_id: str) -> str:
    return uuid("agent", call_id).replace("-", "")[:8]


def run(world: World, name: str, arguments: dict[str, Any], body: str) -> Result:
    relative = str(arguments.get("file_path", "")).removeprefix(ROOT + "/")
    if name == "Read":
        return world.read(relative, arguments.get("offset"), arguments.get("limit"))
    if name == "Glob":
        return world.glob(arguments["pattern"])
    if name == "Grep":
        return world.grep(arguments["pattern"], arguments.get("glob"), arguments.get("output_mode", "files_with_matches"))
    if name == "Edit":
        return world.edit(relative, arguments["old_string"], arguments["new_string"])
    if name == "Write":
        return world.write(relative, arguments["content"])
    if name == "TodoWrite":
        return Result("The to-do list was updated.", {"oldTodos": [], "newTodos": arguments["todos"]}, ms=8)
    return world.shell(arguments["command"])


def parse_call(name: str, argument: str, body: str) -> Call:
    if name == "read":
        path, *window = argument.split()
        arguments: dict[str, Any] = {"file_path": f"{ROOT}/{path}"}
        if window:
            arguments |= {"offset": int(window[0]), "limit": int(window[1])}
        return "Read", arguments, ""
    if name in ("glob", "grep"):
        return name.title(), json.loads(argument), ""
    if name == "bash":
        return "Bash", {"command": body, "description": argument}, ""
    if name == "edit":
        old, new = body.split("\n---- with ----\n") if "\n---- with ----\n" in body else (body.removesuffix("\n---- with ----"), "")
        return "Edit", {"file_path": f"{ROOT}/{argument}", "old_string": old, "new_string": new}, ""
    if name == "write":
        return "Write", {"file_path": f"{ROOT}/{argument}", "content": body + "\n"}, ""
    if name == "todo":
        todos = []
        for line in body.split("\n"):
            status = {"x": "completed", ">": "in_progress", " ": "pending"}[line[1]]
            content, _, active = line[4:].partition(" | ")
            todos.append({"content": content, "status": status, "activeForm": active})
        return "TodoWrite", {"todos": todos}, ""
    raise SystemExit(f"unknown directive {name}")


def build(record: bool = False) -> bytes:
    """Play the story; returns the file."""
    world = World(ROOT, files(HERE / "coding_agent_repo.txt"), {} if record else load_recorded(RECORDED), record)
    session = Session(world)
    story = sections(HERE / "coding_agent_story.txt")
    at = 0
    while at < len(story):
        name, argument, body = story[at]
        at += 1
        if name == "user":
            session.user(body)
        elif name == "setup":
            if record:
                world._run(body)
        elif name == "pause":
            session.clock.tick(int(argument) * 1000)
        elif name == "meta":
            session.user(body, isMeta=True)
        elif name == "row":
            row = json.loads(body)
            session.bare(**{key: _fill(value, session) for key, value in row.items()})
        elif name == "system":
            session.line("main", "system", 20, subtype=argument, **json.loads(body))
        elif name == "compact":
            session.compact(body, argument)
        elif name == "asst":
            think, text, calls, at = response(story, at, body)
            session.assistant(think, text, calls, interleave=argument == "interleave")
        else:
            raise SystemExit(f"unknown directive {name}")
    if record:
        RECORDED.write_text(json.dumps(world.recorded, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    return dump_lines(session.rows)


def response(story: list[tuple[str, str, str]], at: int, body: str) -> tuple[str, str, list[Call], int]:
    """Collect one response: the text, then thinking and calls until the next message starts."""
    think, text, calls = "", body, []
    while at < len(story) and story[at][0] in ("think", "read", "glob", "grep", "bash", "edit", "write", "todo", "task"):
        name, argument, inner = story[at]
        at += 1
        if name == "think":
            think, _, text = inner.partition("\n----\n")
            text = text or body
        elif name == "task":
            steps: list[dict[str, Any]] = [{"text": inner}]
            while story[at][0] == "side":
                side = story[at]
                side_think, side_text, side_calls, at = response(story, at + 1, side[2])
                steps.append({"think": side_think, "text": side_text, "calls": side_calls})
            calls.append(("Task", {"description": argument, "prompt": inner, "subagent_type": "general-purpose"}, json.dumps(steps)))
        else:
            calls.append(parse_call(name, argument, inner))
    return think, text, calls, at


def _fill(value: Any, session: Session) -> Any:
    if value == "$session":
        return SESSION
    if value == "$leaf":
        return session.parent["main"]
    if value == "$now":
        return session.clock.now
    if isinstance(value, dict):
        return {key: _fill(inner, session) for key, inner in value.items()}
    return value
