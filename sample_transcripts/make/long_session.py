"""long_session.jsonl: twenty-four cron jobs of an invented ferry operator move to a queue, one after the other, in Codex rollout format."""

# ruff: noqa: E501 (long lines are sentences and commands of the story)

from __future__ import annotations

import difflib
from collections.abc import Iterable

import long_more
from codex import Rollout, shell
from common import compact, digest, number, pick
from long_code import FAILURE, TRAP_NAME, new_job, old_script, test_file
from long_jobs import JOBS, Job
from long_outputs import CLOSING, GO_AHEAD, LINT, NEXT, REQUESTS, SAY_DRY, SAY_READ, TEXTS, THINK_READ, Outputs

CWD = "/srv/src/ferryline"


class Migration(Outputs):
    """Plays the work. Everything a tool prints follows from the jobs and from what was done before."""

    def __init__(self) -> None:
        self.out = Rollout("2026-04-07T07:02:10", CWD, TEXTS["base_instructions"].strip())
        self.done: list[Job] = []
        self.tests = 212
        self.commits = ["5f1c0a7 Release 2026.14", "c2e91d4 Fares: round once, at the end"]

    # -- small things that are said and done -------------------------------------------------------------------------

    def ask(self, text: str, pause: int | None = None) -> None:
        self.out.user(text, pause if pause is not None else number(20, 400, "pause", text))

    def step(self, think: str, text: str, *calls: tuple[tuple[str, str], str, int]) -> None:
        """One response with its calls, each ``((tool, arguments), output, milliseconds)``."""
        ids = self.out.respond(think, text, [call for call, _, _ in calls])
        for call_id, (call, output, ms) in zip(ids, calls, strict=True):
            self.out.output(call_id, call[0], output, ms)
        self.out.token_count()

    def answer(self, text: str, think: str = "") -> None:
        self.out.respond(think, text, [], final=True)
        self.out.token_count()
        self.out.done(text)

    def run(self, command: str, output: str, code: int = 0, ms: int | None = None) -> tuple[tuple[str, str], str, int]:
        took = ms or number(90, 1900, command, len(self.done))
        return shell(command, CWD), f"Exit code: {code}\nWall time: {took / 1000:.1f} seconds\nOutput:\n{output}", took

    def patch(self, path: str, before: str, after: str) -> tuple[tuple[str, str], str, int]:
        if not before:
            body = f"*** Add File: {path}\n" + "".join(f"+{line}\n" for line in after.splitlines())
            mark = "A"
        else:
            body = f"*** Update File: {path}\n" + "".join(_hunks(before, after))
            mark = "M"
        return (
            ("apply_patch", f"*** Begin Patch\n{body}*** End Patch\n"),
            compact({"output": f"Success. Updated the following files:\n{mark} {path}\n", "metadata": {"exit_code": 0, "duration_seconds": 0.0}}),
            60,
        )

    def pytest(self, what: str, passed: int, seconds: float, failure: str = "") -> tuple[tuple[str, str], str, int]:
        line = f"{passed} passed in {seconds:.2f}s" if not failure else f"1 failed, {passed} passed in {seconds:.2f}s"
        dots = "." * min(passed, 72) if not failure else "F" + "." * min(passed, 71)
        return self.run(f"python -m pytest -q {what}".strip(), f"{dots}\n{failure}{line}\n", 1 if failure else 0, int(seconds * 1000) + 400)

    # -- one job -----------------------------------------------------------------------------------------------------

    def job(self, job: Job) -> None:
        at = len(self.done)
        old, draft, right, tests = old_script(job), new_job(job, False), new_job(job, True), test_file(job)
        rows = number(3, 4200, "rows", job.name)
        self.ask(pick(REQUESTS, "request", at).format(name=job.name, cron=job.cron, does=job.does, table=job.table, before=JOBS[at - 1].name if at else "none"))
        plan = [
            {"step": f"Read deploy/crontab.d/{job.name} and the script", "status": "in_progress"},
            {"step": f"Write ferryline/jobs/{job.name}.py with tests", "status": "pending"},
            {"step": "Compare a dry run of both, then one run on staging", "status": "pending"},
            {"step": "Remove the cron file, update docs/migration.md", "status": "pending"},
        ]
        if at % 3 != 2:
            self.step("", "", (("update_plan", compact({"plan": plan})), "Plan updated", 5))
        user = pick(("ferry", "ferry", "billing", "ops"), "user", job.name)
        wrapper = " | /usr/local/bin/cron-report.sh" if job.trap in ("stdout", "exit") else " >> /var/log/ferryline/cron.log 2>&1"
        cronfile = f"# {job.does}\nMAILTO={'office@example.com' if job.trap == 'mailto' else 'cron@example.com'}\n{job.cron} {user} cd /srv/ferryline && python -m ferryline.cron.{job.name}{wrapper}\n"
        self.step(
            pick(THINK_READ, "think", job.name).format(name=job.name, table=job.table, trap=job.trap),
            pick(SAY_READ, "say", at).format(name=job.name, does=job.does),
            self.run(f"cat deploy/crontab.d/{job.name}", cronfile),
            self.run(f"cat ferryline/cron/{job.name}.py", old),
        )
        self.step("", "", self.run(f"rg -n '{job.name}' --glob '!CHANGELOG.md' --glob '!ferryline/cron/{job.name}.py'", self.mentions(job)))
        if number(0, 2, "log", job.name):
            self.step(
                "",
                "",
                self.run(f"git log --oneline -4 -- ferryline/cron/{job.name}.py", self.history(job)),
                self.run(f"tail -n 6 /var/log/ferryline/{job.name}.log", self.log(job, rows)),
            )
        self.step(
            "",
            "",
            self.run(f'psql -d staging -c "\\d {job.table}"', self.table(job)),
            self.run(f'psql -d staging -Atc "SELECT count(*) FROM {job.table}"', f"{number(9_000, 4_800_000, 'count', job.table)}\n"),
        )
        if number(0, 3, "plan", job.name):
            long_more.plan_and_rows(self, job, rows)
        long_more.module(self, job)
        said, found = FAILURE[job.trap]
        self.step(
            "",
            f"The query and the body of the loop can go over as they are. I'll write `{job.name}` as a queue job with the same schedule, `{job.cron}`.",
            self.patch(f"ferryline/jobs/{job.name}.py", "", draft),
        )
        self.step("", "", self.patch(f"tests/jobs/test_{job.name}.py", "", tests))
        said = said.format(name=job.name, after=job.after)
        self.step("", "", self.pytest(f"tests/jobs/test_{job.name}.py", 1, number(40, 190, "t1", job.name) / 100, self.failure(job, tests, said)))
        self.step(f"The test shows it: {found}.", f"That is the trap in this one: {found}.", self.run(*self.look(job)))
        self.step("", "", self.patch(f"ferryline/jobs/{job.name}.py", draft, right))
        self.tests += 2
        self.step("", "", self.pytest(f"tests/jobs/test_{job.name}.py", 2, number(30, 160, "t2", job.name) / 100))
        if number(0, 3, "lint", job.name) == 0:
            self.lint(job)
        same = number(0, 4, "same", job.name)
        self.step(
            "", pick(SAY_DRY, "dry", at).format(name=job.name, table=job.table, rows=rows, cron=job.cron, seen=self.tests), self.dry_run(job, rows, same == 0)
        )
        if same == 0:
            self.step(
                f"One row differs: {job.key} at the end, booked between the two runs.",
                "",
                self.run(f'psql -d staging -Atc "SELECT xmin, * FROM {job.table} ORDER BY {job.key} DESC LIMIT 1" | cut -c1-120', self.row(job, rows)),
            )
            self.step(
                "",
                "The extra row was written between the two runs. With a fixed `now` both give the same:",
                self.dry_run(job, rows + 1, False, f" --now 2026-04-{8 + at // 3:02d}T04:00:00Z"),
            )
        self.answer(self.report(job, rows, found))
        self.question(job, rows)
        self.ask(pick(GO_AHEAD, "go", at).format(name=job.name, table=job.table))
        long_more.trouble(self, job)
        self.step(
            "", "", self.run(f"ferryctl queue enqueue {job.name} --env staging --wait", self.staging(job, rows), ms=number(1500, 41_000, "stage", job.name))
        )
        long_more.metrics(self, job, rows)
        if number(0, 3, "worker", job.name):
            self.step("", "", self.run(f"ferryctl queue logs --env staging --job {job.name} -n 12", self.worker_log(job, rows)))
        self.step(
            "",
            "",
            self.run(
                f"git rm -q deploy/crontab.d/{job.name} && git rm -q ferryline/cron/{job.name}.py && rg -c 'ferryline.cron' deploy docs || true", self.left(at)
            ),
        )
        line_old, line_new = f"| {job.name} | {job.cron} | cron | |\n", f"| {job.name} | {job.cron} | queue | {TRAP_NAME[job.trap].replace('_', ' ')} |\n"
        self.step("", "", self.patch("docs/migration.md", line_old, line_new))
        long_more.runbook(self, job, rows)
        self.step("", "", self.run("python -m pytest -q --no-header", long_more.full_suite(self, job)))
        sha = digest("commit", job.name).hex()[:7]
        self.commits.insert(0, f"{sha} Queue: {job.name}")
        self.step(
            "",
            "",
            self.run(f"git add -A && git commit -q -m 'Queue: {job.name}' && git log --oneline -3", "\n".join(self.commits[:3]) + "\n"),
            self.run("git status --short | head", ""),
        )
        self.done.append(job)
        self.answer(pick(CLOSING, "close", at).format(name=job.name, sha=sha, tests=self.tests, rows=rows, left=24 - len(self.done), cron=job.cron))
        if number(0, 2, "after", job.name) == 0:
            self.afterthought(job, rows)

    def question(self, job: Job, rows: int) -> None:
        """What a person wants to know before it goes to staging."""
        kind = number(0, 5, "question", job.name)
        if kind == 0:
            self.ask(f"What happens to {job.name} if a worker dies half way?")
            self.step("Look at how acknowledgement works before answering.", "", self.run("sed -n '30,78p' ferryline/queue/worker.py", _WORKER))
            self.answer(
                f"The job runs in one transaction and is acknowledged only after the commit (`worker.py`, `self.queue.ack(job)`). A worker that dies leaves the lease to run out after 90 seconds; another one takes `{job.name}` again, and its query finds the same rows in `{job.table}`, because nothing was committed."
            )
        elif kind == 1:
            self.ask("How long does it take, compared with cron? Measure it, three runs each.")
            old = [number(800, 9000, "old", job.name, n) / 1000 for n in range(3)]
            new = [seconds * (0.8 + number(0, 30, "new", job.name) / 100) for seconds in old]
            table = "".join(f"cron   run {n + 1}  {a:6.2f} s\nqueue  run {n + 1}  {b:6.2f} s\n" for n, (a, b) in enumerate(zip(old, new, strict=True)))
            self.step("", "", self.run(f"python scripts/time_job.py {job.name} --runs 3", table, ms=int(sum(old + new) * 1000)))
            self.answer(
                f"About the same: {sum(old) / 3:.1f} s under cron, {sum(new) / 3:.1f} s as a queue job, for {rows:,} rows. The time is the query on `{job.table}`, not the scheduling."
            )
        elif kind == 2:
            self.ask(f"Does anything still read what {job.name} leaves behind? I do not want a surprise on Monday.")
            self.step("", "", self.run(f"rg -n '{job.table}' ferryline --glob '*.py' | head -8", self.readers(job)))
            self.answer(
                f"Four places read `{job.table}`: the timetable, the desk view, the nightly report and the API. All of them read the columns, none cares who wrote them. The only thing that read the *output* was `cron-report.sh`, and that reads the queue's report table since the first day of the migration."
            )
        elif kind == 3:
            self.ask("Can two workers take it at the same time? We run three of them.")
            self.step(
                "",
                "",
                self.run(
                    f"python scripts/race.py {job.name} --workers 3 --rounds 200",
                    f"job {job.name}: 200 rounds, 3 workers\ntaken once: 200   taken twice: 0   lost: 0\nlongest wait for the lease: {number(11, 240, 'wait', job.name)} ms\n",
                    ms=number(9000, 30_000, "race", job.name),
                ),
            )
            self.answer(
                "No: `SELECT ... FOR UPDATE SKIP LOCKED` in `ferryline/queue/store.py` gives a row to one worker only. 200 rounds with three workers: taken once 200 times, never twice, never lost."
            )
        elif kind == 4:
            self.ask(f"Show me what is really different between the old script and the new {job.name}, only the lines.")
            diff = "".join(difflib.unified_diff(old_script(job).splitlines(True), new_job(job, True).splitlines(True), "cron", "jobs", n=0))
            self.step("", "", self.run(f"diff -U0 <(git show HEAD:ferryline/cron/{job.name}.py) ferryline/jobs/{job.name}.py", diff, 1))
            self.answer(
                "That is all of it: the imports, the decorator with the schedule, `context` instead of a connection of its own, and what the trap needed. The query and the loop are the same lines."
            )
        else:
            self.ask(f"Wait, {job.cron}: is that local time or UTC? Our crontab has no TZ line.")
            self.step("", "", self.run("grep -rn 'TZ=' deploy/crontab.d deploy/ansible | head -5; timedatectl | sed -n '1,4p'", TEXTS["timedatectl"]))
            self.answer(
                f"Harbour time: the cron host is set to Europe/Oslo. The queue reads schedules in UTC unless told otherwise, so `@job` has `zone=` for it. Following your rule from the first day I keep the passengers' clock: `{job.name}` runs at the same wall-clock minute as before, summer and winter."
            )

    def afterthought(self, job: Job, rows: int) -> None:
        kind = number(0, 3, "afterthought", job.name)
        if kind == 0:
            self.ask(f"Staging shows a yellow mark on {job.name}. Bad?", 900)
            self.step("", "", self.run(f"ferryctl queue show {job.name} --env staging", self.show(job, rows)))
            self.answer(
                f"Not bad: yellow means that the last run took longer than half of the interval of `{job.cron}`. It had {rows:,} rows to do after two days without a run. The next one will be short."
            )
        elif kind == 1:
            self.ask("Add it to the dashboard as well, same row style as the others.")
            self.step(
                "",
                "",
                self.patch(
                    "deploy/dashboard/jobs.toml",
                    f'[[row]]\njob = "{(self.done[-2] if len(self.done) > 1 else job).name}"\nwarn_after = "2h"\n',
                    f'[[row]]\njob = "{(self.done[-2] if len(self.done) > 1 else job).name}"\nwarn_after = "2h"\n\n[[row]]\njob = "{job.name}"\nwarn_after = "{pick(("30m", "2h", "26h", "8d"), job.cron)}"\n',
                ),
            )
            self.answer(f"`{job.name}` has its row in `deploy/dashboard/jobs.toml`; the warning threshold follows from `{job.cron}`.")
        elif kind == 2:
            self.ask("Give me the list of what is still on cron.")
            rest = [item for item in JOBS if item not in self.done]
            self.step("", "", self.run("ls deploy/crontab.d", "\n".join(sorted(item.name for item in rest)) + "\n"))
            self.answer(f"Still on cron: {len(rest)} of 24" + (": " + ", ".join(f"`{item.name}`" for item in rest) if rest else "") + ".")
        else:
            self.ask(f"The desk asks why {job.table} looks different since this morning.", 1500)
            self.step(
                "",
                "",
                self.run(
                    f"psql -d staging -c \"SELECT job, started_at, rows, status FROM queue_runs WHERE job = '{job.name}' ORDER BY started_at DESC LIMIT 4\"",
                    self.runs(job, rows),
                ),
            )
            self.answer(
                f"The first run as a queue job did {rows:,} rows at once, because cron had been off for the switch. Since then it does its usual share. Nothing in `{job.table}` was changed twice."
            )

    def lint(self, job: Job) -> None:
        finding = pick(LINT, "lint", job.name).format(name=job.name, table=job.table, key=job.key)
        right = new_job(job, True)
        self.step("", "", self.run(f"ruff check ferryline/jobs tests/jobs && mypy ferryline/jobs/{job.name}.py", finding, 1))
        changed = right.replace("    count = 0\n", "    count: int = 0\n", 1)
        self.step("", "", self.patch(f"ferryline/jobs/{job.name}.py", right, changed))
        self.step(
            "",
            "",
            self.run(
                f"ruff check ferryline/jobs tests/jobs && mypy ferryline/jobs/{job.name}.py", "All checks passed!\nSuccess: no issues found in 1 source file\n"
            ),
        )

    def dry_run(self, job: Job, rows: int, differs: bool, extra: str = "") -> tuple[tuple[str, str], str, int]:
        tail = f"{rows}c{rows}\n< {self.key(job, rows)}\n---\n> {self.key(job, rows + 1)}\n" if differs else "no difference\n"
        command = f"python -m ferryline.cron.{job.name} --dry-run{extra} > /tmp/old.txt; ferryctl run {job.name} --dry-run{extra} > /tmp/new.txt; wc -l < /tmp/old.txt; wc -l < /tmp/new.txt; head -4 /tmp/new.txt; diff /tmp/old.txt /tmp/new.txt && echo no difference"
        head = "".join(f"{self.key(job, n)}\n" for n in range(1, min(rows, 4) + 1))
        return self.run(command, f"{rows}\n{rows + differs}\n{head}{tail}", 1 if differs else 0, number(900, 9000, "dry", job.name))

    def report(self, job: Job, rows: int, found: str) -> str:
        return (
            f"`{job.name}` is written as a queue job and not switched yet.\n\n- Same query and same loop; schedule `{job.cron}`"
            + (f", after `{job.after}`" if job.after else "")
            + f".\n- Found on the way: {found}.\n- `tests/jobs/test_{job.name}.py` has two tests, `{TRAP_NAME[job.trap]}` and `touches_only_due_rows`; the dry run gives the same {rows:,} rows as the script.\n\n"
            + pick(NEXT, "next", job.name).format(name=job.name, table=job.table)
        )


def _hunks(before: str, after: str) -> Iterable[str]:
    old, new = before.splitlines(), after.splitlines()
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(2):
        yield "@@\n"
        for tag, a, b, c, d in group:
            if tag == "equal":
                yield from (f" {line}\n" for line in old[a:b])
            else:
                yield from (f"-{line}\n" for line in old[a:b])
                yield from (f"+{line}\n" for line in new[c:d])


_WORKER = TEXTS["worker"]


def build() -> bytes:
    """The whole session; returns the file."""
    work = Migration()
    work.out.injected("user", TEXTS["agents_md"].strip())
    work.out.injected("user", TEXTS["environment_context"].strip())
    intro = TEXTS["intro"].split("\n----\n")
    work.ask(intro[0].strip(), 0)
    work.step(
        "",
        intro[1].strip(),
        work.run(
            "ls deploy/crontab.d | wc -l; ls deploy/crontab.d; ls ferryline/queue",
            "24\n" + "\n".join(sorted(job.name for job in JOBS)) + "\ncontext.py\ndecorator.py\nerrors.py\nschedule.py\nstore.py\nworker.py\n",
        ),
    )
    work.step("", "", work.run("cat ferryline/queue/worker.py", _WORKER), work.run("cat ferryline/queue/context.py", TEXTS["context"]))
    work.step("", "", work.run("cat docs/migration.md", TEXTS["migration_md"] + "".join(f"| {job.name} | {job.cron} | cron | |\n" for job in JOBS)))
    work.answer(intro[2].strip())
    compacted_after = 17
    for job in JOBS:
        if len(work.done) == compacted_after:
            done = "\n".join(f"- {item.name}: {TRAP_NAME[item.trap].replace('_', ' ')}" for item in work.done)
            rest = ", ".join(item.name for item in JOBS[compacted_after:])
            summary = TEXTS["summary"].format(done=done, rest=rest, tests=work.tests, commit=work.commits[0])
            work.out.compact(summary.strip(), 6)
        work.job(job)
    outro = TEXTS["outro"].split("\n----\n")
    work.ask(outro[0].strip(), 2400)
    work.step(
        "",
        outro[1].strip(),
        work.run(
            "ls deploy/crontab.d 2>&1; rg -n 'ferryline.cron' . | head",
            "ls: cannot access 'deploy/crontab.d': No such file or directory\ndocs/migration.md:8:Jobs used to be started as `python -m ferryline.cron.NAME`.\n",
            0,
        ),
        work.run("ferryctl queue list --env staging", "".join(f"{job.name:<26}{job.cron:<15}{job.after or '-':<22}ok\n" for job in JOBS)),
    )
    work.answer(outro[2].strip())
    work.ask(outro[3].strip())
    work.step("", "", work.run("git log --oneline | head -26", "\n".join(work.commits[:26]) + "\n"))
    work.answer(outro[4].strip())
    return work.out.bytes()
