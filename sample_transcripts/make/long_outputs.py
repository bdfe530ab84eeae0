"""What tools print in the long session, and the sentences it is told with. All of it follows from a job and from what was done before."""

# ruff: noqa: E501 (long lines are lines of output)

from __future__ import annotations

from collections.abc import Iterable

from common import HERE, digest, files, number, pick
from long_code import TRAP_NAME
from long_jobs import JOBS, Job

TEXTS = files(HERE / "long_texts.txt")


class Outputs:
    """Texts that tools give back."""

    done: list[Job]

    def mentions(self, job: Job) -> str:
        lines = [
            f"deploy/crontab.d/{job.name}:3:{job.cron} ferry cd /srv/ferryline && python -m ferryline.cron.{job.name}",
            f"docs/migration.md:{41 + JOBS.index(job)}:| {job.name} | {job.cron} | cron | |",
        ]
        if job.trap in ("stdout", "exit"):
            lines.append(f"deploy/bin/cron-report.sh:{number(12, 60, job.name)}:  {job.name}) pattern='{job.name}: [0-9]+ rows' ;;")
        lines += [f"docs/runbook/{other.name}.md:{number(4, 30, other.name, job.name)}:runs after `{job.name}`" for other in JOBS if other.after == job.name]
        lines.append(f'tests/cron/test_{pick(("smoke", "imports", "schedules"), job.name)}.py:{number(9, 80, job.name, "t")}:    "{job.name}",')
        return "\n".join(lines) + "\n"

    def history(self, job: Job) -> str:
        return "".join(
            f"{digest(job.name, n).hex()[:7]} {pick(HISTORY, job.name, n).format(name=job.name, table=job.table, key=job.key)}\n"
            for n in range(number(2, 4, job.name, "h"))
        )

    def log(self, job: Job, rows: int) -> str:
        return "".join(
            f"2026-04-0{1 + n} 0{number(0, 6, job.name)}:{number(10, 59, job.name)}:{number(10, 59, job.name, n):02d} {job.name}: {max(0, rows - number(0, 40, job.name, n, 'r'))} rows in {number(8, 900, job.name, n, 's') / 10:.1f} s\n"
            for n in range(6)
        )

    def table(self, job: Job) -> str:
        columns = sorted(
            {job.key, *(word for word in _words(job.where + " ".join(job.action)) if word.endswith(("_at", "_on", "_id", "_ref", "_minor", "state", "_code")))}
        )
        width = max(len(column) for column in columns) + 2
        kinds = {"_at": "timestamp with time zone", "_on": "date", "nor": "bigint", "ate": "text", "_id": "bigint", "ref": "text", "ode": "text"}
        body = "".join(f" {column:<{width}}| {kinds.get(column[-3:], 'text'):<26}| {'not null' if column == job.key else ''}\n" for column in columns)
        return f'Table "public.{job.table}"\n {"Column":<{width}}| {"Type":<26}| Nullable\n{"-" * (width + 1)}+{"-" * 27}+----------\n{body}Indexes:\n    "{job.table}_pkey" PRIMARY KEY, btree ({job.key})\n'

    def failure(self, job: Job, tests: str, said: str) -> str:
        name = f"test_{job.name}_{TRAP_NAME[job.trap]}"
        lines = tests.splitlines()
        start = next(n for n, line in enumerate(lines) if line.startswith("def "))
        end = next(n for n in range(start + 1, len(lines)) if not lines[n])
        body = [f"    {line}" if line else "" for line in lines[start:end]]
        body[-1] = ">" + body[-1][1:]
        return (
            f"{'=' * 35} FAILURES {'=' * 35}\n{name:_^80}\n\n"
            + "\n".join(body)
            + f"\nE   {said}\n\ntests/jobs/test_{job.name}.py:{end}: {said.split(':')[0].split(' ')[0]}\n"
        )

    def look(self, job: Job) -> tuple[str, str]:
        others = [other for other in JOBS if other.trap == job.trap and other is not job]
        found = "".join(
            f"docs/migration.md:{41 + JOBS.index(other)}:| {other.name} | {other.cron} | {'queue' if other in self.done else 'cron'} |\n" for other in others
        )
        commands = {
            "lockfile": (
                "rg -n 'unique=' ferryline/jobs ferryline/queue",
                "ferryline/queue/decorator.py:22:    unique: str | None = None,\nferryline/queue/store.py:61:        if job.unique and self.exists(job.name, job.unique.format(slot=slot)):\nferryline/queue/store.py:62:            raise AlreadyQueued(job.name, slot)\n",
            ),
            "twice": ("sed -n '52,70p' ferryline/queue/store.py", TEXTS["store_unique"]),
            "localtime": (
                "rg -n 'zone' ferryline/queue/*.py",
                'ferryline/queue/decorator.py:24:    zone: str = "UTC",\nferryline/queue/schedule.py:18:def next_slot(cron: str, after: datetime, zone: str) -> datetime:\nferryline/queue/context.py:14:    now: datetime  # of the slot, in UTC; never the wall clock\n',
            ),
            "yesterday": ("sed -n '1,30p' ferryline/queue/context.py", TEXTS["context"]),
            "stdout": ("cat deploy/bin/cron-report.sh | head -24", TEXTS["cron_report"]),
            "mailto": ("rg -n 'MAILTO' deploy", "".join(f"deploy/crontab.d/{other.name}:2:MAILTO=office@example.com\n" for other in (job, *others))),
            "exit": (
                "rg -n 'sys.exit' ferryline/cron",
                f"ferryline/cron/{job.name}.py:26:    sys.exit(3 if count == 0 else 0)  # 3: nothing to do, the wrapper knows\n",
            ),
            "timeout": (
                "rg -n 'setdefaulttimeout|timeout_s' ferryline",
                "".join(
                    f"ferryline/{'jobs' if other in self.done else 'cron'}/{other.name}.py:{number(11, 19, other.name)}:{'    timeout_s=120' if other in self.done else '    socket.setdefaulttimeout(600)'}\n"
                    for other in (job, *others)
                ),
            ),
            "swallow": ("rg -n 'class FeedError' -A 6 ferryline/feeds.py", TEXTS["feed_error"]),
            "order": ("sed -n '70,96p' ferryline/queue/store.py", TEXTS["store_after"]),
            "chdir": (
                "rg -n 'data_root|os.chdir' ferryline",
                "".join(
                    f'ferryline/cron/{other.name}.py:{number(14, 22, other.name)}:    os.chdir("/srv/ferryline")\n'
                    for other in (job, *others)
                    if other not in self.done
                )
                + 'ferryline/settings.py:31:    data_root: Path = Path("/srv/ferryline")\n',
            ),
            "default": (
                "rg -n 'def run\\(.*=\\[\\]' ferryline",
                "".join(f"ferryline/cron/{other.name}.py:19:def run(db=None, seen=[]):\n" for other in (job, *others) if other not in self.done),
            ),
        }
        command, output = commands[job.trap]
        return f"{command}; rg -n '{job.trap}' docs/migration.md | head -3", output + found

    def key(self, job: Job, n: int) -> str:
        value = number(100_000, 999_999, job.name, n)
        return {
            "booking_ref": f"FL{value:06d}",
            "group_ref": f"GRP-{value % 9000 + 1000}",
            "harbour_code": pick(("NOR", "SKA", "HVA", "LYN", "TRO", "BRE"), job.name, n),
            "vessel_code": pick(("MV-ALK", "MV-TERNE", "MV-LUNDE", "MV-HAVØRN"), job.name, n),
        }.get(job.key, f"{job.key}={value}")

    def row(self, job: Job, rows: int) -> str:
        return f"{number(70_000_000, 79_999_999, job.name)}|{self.key(job, rows + 1)}|2026-04-{8 + len(self.done) // 3:02d} 04:00:{number(10, 59, job.name)}.{number(100, 999, job.name)}+00|\n"

    def staging(self, job: Job, rows: int) -> str:
        return f'queued   {job.name} as run {number(20_000, 29_999, "run", job.name)}\nstarted  worker-{number(1, 3, job.name)} after {number(20, 900, job.name, "q")} ms\nfinished {rows} rows in {number(4, 400, job.name, "d") / 10:.1f} s, 0 failures\nreport   {{"job": "{job.name}", "rows": {rows}}}\n'

    def worker_log(self, job: Job, rows: int) -> str:
        run = number(20_000, 29_999, "run", job.name)
        lines = [
            f"run {run} leased by worker-{number(1, 3, job.name)} for 90 s",
            f"run {run} transaction opened",
            *(f"run {run} {job.key} {self.key(job, n)} ok" for n in range(1, 7)),
            f"run {run} {rows} rows, commit",
            f"run {run} acknowledged",
        ]
        return "".join(
            f"2026-04-{8 + len(self.done) // 3:02d}T{number(7, 15, job.name):02d}:{n + 10}:{number(10, 59, job.name, n)}Z INFO queue {line}\n"
            for n, line in enumerate(lines)
        )

    def show(self, job: Job, rows: int) -> str:
        return f"job        {job.name}\nschedule   {job.cron} (Europe/Oslo)\nlast run   {number(20_000, 29_999, 'run', job.name)}, {rows} rows, {number(30, 600, job.name)} s\nnext slot  in {number(1, 59, job.name, 'm')} min\nafter      {job.after or '-'}\nstatus     slow (yellow)\n"

    def runs(self, job: Job, rows: int) -> str:
        lines = [f" {job.name} | 2026-04-{9 + n:02d} 04:0{n} | {rows if n == 0 else number(1, 60, job.name, n, 'x'):>6} | ok\n" for n in range(4)]
        return " job | started_at | rows | status\n-----+------------+------+--------\n" + "".join(reversed(lines))

    def readers(self, job: Job) -> str:
        return "".join(
            f"ferryline/{where}.py:{number(20, 240, job.table, where)}:{line}\n"
            for where, line in (
                ("timetable", f'    rows = db.query("SELECT * FROM {job.table} WHERE {job.key} = :id", id=id)'),
                ("desk", f'    {job.table} = view("{job.table}", order="{job.key}")'),
                ("reports/nightly", f'SOURCES = ("{job.table}", "queue_runs")'),
                ("api/v2", f'@route("/{job.table.replace("_", "-")}/<{job.key}>")'),
            )
        )

    def left(self, at: int) -> str:
        return f"deploy/crontab.d: {23 - at} files\ndocs/migration.md:{max(1, 23 - at)}\n" if at < 23 else "docs/migration.md:1\n"


def _words(text: str) -> Iterable[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in text).split()


def _pool(name: str) -> tuple[str, ...]:
    return tuple(line for line in TEXTS[name].splitlines() if line)


REQUESTS, THINK_READ, SAY_READ, SAY_DRY, GO_AHEAD, CLOSING, NEXT, HISTORY, LINT = (
    _pool(name) for name in ("requests", "think_read", "say_read", "say_dry", "go_ahead", "closing", "next", "history", "lint")
)
LINT = tuple(line.replace(" // ", "\n") + "\n" for line in LINT)
