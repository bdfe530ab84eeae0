"""Further steps of the long session: query plans, sample rows, runbook pages, metrics, and staging runs that fail at first."""

# ruff: noqa: E501 (long lines are lines of the story)

from __future__ import annotations

from typing import TYPE_CHECKING

from common import HERE, files, number, pick
from long_jobs import Job

if TYPE_CHECKING:
    from long_session import Migration

MODULES = files(HERE / "long_modules.txt")


def plan_and_rows(work: Migration, job: Job, rows: int) -> None:
    """What the planner does with the query, and what the rows look like."""
    index = f"{job.table}_{pick(('due', 'state', 'time', 'scan'), job.name)}_idx"
    cost = number(120, 90_000, job.name, "cost")
    took = number(4, 9000, job.name, "took") / 10
    head = f"Index Scan using {index} on {job.table}" if number(0, 2, job.name, "seq") else f"Seq Scan on {job.table}"
    plan = (
        f" Sort  (cost={cost}.{number(10, 99, job.name)}..{cost + 14}.02 rows={rows} width={number(60, 240, job.name)}) (actual time={took:.3f}..{took + 0.6:.3f} rows={rows} loops=1)\n"
        f"   Sort Key: {job.key}\n   Sort Method: quicksort  Memory: {25 + rows // 9}kB\n"
        f"   ->  {head}  (cost=0.42..{cost}.11 rows={rows} width={number(60, 240, job.name)}) (actual time=0.0{number(11, 99, job.name, 'a')}..{took - 0.2:.3f} rows={rows} loops=1)\n"
        f"         Filter: ({job.where.replace(':', '$')})\n         Rows Removed by Filter: {number(0, 400_000, job.name, 'filter')}\n"
        f" Planning Time: 0.{number(101, 940, job.name, 'p')} ms\n Execution Time: {took + 1.1:.3f} ms\n"
    )
    width = 18
    sample = f" {job.key:<{width}}| {'changed_at':<24}| note\n{'-' * (width + 1)}+{'-' * 25}+{'-' * 20}\n" + "".join(
        f" {work.key(job, n).split('=')[-1]:<{width}}| 2026-04-0{number(1, 7, job.name, n)} {number(0, 23, job.name, n, 'h'):02d}:{number(10, 59, job.name, n, 'm')}:{number(10, 59, job.name, n, 's')}+02  | {pick(NOTES, job.name, n)}\n"
        for n in range(1, 10)
    )
    work.step(
        "",
        "",
        work.run(f'psql -d staging -c "EXPLAIN ANALYZE SELECT * FROM {job.table} WHERE {job.where} ORDER BY {job.key}" -v now="\'2026-04-08 04:00+00\'"', plan),
        work.run(f'psql -d staging -c "SELECT {job.key}, changed_at, note FROM {job.table} ORDER BY changed_at DESC LIMIT 9"', sample),
    )


def module(work: Migration, job: Job) -> None:
    """The module that the job leans on: read in full the first time, searched later."""
    name = KIND_MODULE[job.kind]
    if all(other.kind != job.kind for other in work.done):
        work.step(f"I have not seen ferryline/{name}.py yet.", "", work.run(f"cat ferryline/{name}.py", MODULES[name]))
    else:
        lines = [f"{number_}:{line}" for number_, line in enumerate(MODULES[name].splitlines(), 1) if line.lstrip().startswith(("def ", "class ", "raise "))]
        work.step("", "", work.run(f"rg -n '^\\s*(def|class|raise) ' ferryline/{name}.py", "\n".join(lines) + "\n"))


def runbook(work: Migration, job: Job, rows: int) -> None:
    """The page for the person on duty says how to start the job by hand: that changes."""
    page = RUNBOOK.format(
        name=job.name,
        does=job.does,
        cron=job.cron,
        table=job.table,
        key=job.key,
        rows=rows,
        after=job.after or "nothing",
        owner=pick(OWNERS, job.table),
        stale=number(2, 9, job.cron),
    )
    work.step("", "", work.run(f"cat docs/runbook/{job.name}.md", page))
    changed = page.replace(
        f"    ssh cron-1.example.com sudo -u ferry python -m ferryline.cron.{job.name}\n", f"    ferryctl queue enqueue {job.name} --wait\n"
    ).replace("/var/log/ferryline/cron.log", f"`ferryctl queue logs --job {job.name}`")
    work.step("", "", work.patch(f"docs/runbook/{job.name}.md", page, changed))


def metrics(work: Migration, job: Job, rows: int) -> None:
    names = (
        "ferryline_job_runs_total",
        "ferryline_job_rows_total",
        "ferryline_job_seconds_sum",
        "ferryline_job_failures_total",
        "ferryline_job_wait_seconds_max",
    )
    values = (1, rows, number(4, 400, job.name, "d") / 10, 0, number(20, 900, job.name, "q") / 1000)
    text = "".join(f'{name}{{job="{job.name}",env="staging"}} {value}\n' for name, value in zip(names, values, strict=True))
    work.step("", "", work.run(f"curl -s staging.example.com:9410/metrics | rg '\"{job.name}\"'", text))


def trouble(work: Migration, job: Job) -> None:
    """Half of the first staging runs fail for a reason that has nothing to do with the job's own trap."""
    kind = number(0, 7, "trouble", job.name)
    run = number(18_000, 19_999, "bad", job.name)
    enqueue = f"ferryctl queue enqueue {job.name} --env staging --wait"
    if kind == 0:
        work.step(
            "",
            "",
            work.run(enqueue, f"queued   {job.name} as run {run}\nfailed   psycopg.errors.InsufficientPrivilege: permission denied for table {job.table}\n", 1),
        )
        work.step(
            "The workers use another role than the cron host did.",
            "",
            work.run(
                "rg -n 'GRANT' deploy/sql/roles.sql",
                "deploy/sql/roles.sql:4:GRANT SELECT, UPDATE ON ALL TABLES IN SCHEMA public TO ferry_cron;\ndeploy/sql/roles.sql:9:GRANT SELECT, UPDATE ON seat_holds, sailings TO ferry_worker;\n",
            ),
        )
        work.step(
            "",
            f"The role `ferry_worker` may not write `{job.table}` yet. I'll add exactly this table to the grants, nothing wider.",
            work.patch(
                "deploy/sql/roles.sql",
                "GRANT SELECT, UPDATE ON seat_holds, sailings TO ferry_worker;\n",
                f"GRANT SELECT, UPDATE ON seat_holds, sailings TO ferry_worker;\nGRANT SELECT, INSERT, UPDATE, DELETE ON {job.table} TO ferry_worker;\n",
            ),
        )
        work.step("", "", work.run("psql -d staging -f deploy/sql/roles.sql", "GRANT\nGRANT\nGRANT\n"))
    elif kind == 1:
        work.step("", "", work.run(enqueue, f"queued   {job.name} as run {run}\nfailed   ferryline.queue.errors.UnknownJob: {job.name}\n", 1))
        work.step(
            "The workers on staging were started before this job existed.",
            "",
            work.run("ferryctl workers --env staging", "".join(f"worker-{n}  up 6 days  24 jobs known: {len(work.done) + 2}\n" for n in (1, 2, 3))),
        )
        work.step(
            "",
            "",
            work.run(
                "ferryctl workers --env staging restart --gently",
                "worker-1  drained, restarted\nworker-2  drained, restarted\nworker-3  drained, restarted\n",
                ms=41_000,
            ),
        )
    elif kind == 2:
        work.step(
            "", "", work.run(enqueue, f"queued   {job.name} as run {run}\nwaiting  for {job.after or 'a free worker'} (not run today)\n^C\n", 130, 60_000)
        )
        work.step(
            "Waiting is right when the forerunner has not run; on staging nobody starts it.",
            "",
            work.run(
                f"ferryctl queue enqueue {job.after or 'expire_holds'} --env staging --wait",
                f"finished {number(3, 900, job.after, 'r')} rows in 1.4 s, 0 failures\n",
            ),
        )
    elif kind == 3:
        work.step(
            "",
            "",
            work.run(
                enqueue,
                f"queued   {job.name} as run {run}\nfailed   psycopg.errors.LockNotAvailable: canceling statement due to lock timeout on {job.table}\n",
                1,
            ),
        )
        work.step(
            "Who holds the lock?",
            "",
            work.run(
                "psql -d staging -c \"SELECT pid, state, left(query, 60) FROM pg_stat_activity WHERE wait_event_type = 'Lock' OR state = 'idle in transaction'\"",
                f" {number(2000, 9000, job.name)} | idle in transaction | UPDATE {job.table} SET note = 'desk test' WHERE {job.key} = ...\n",
            ),
        )
        work.step("", "", work.run("ferryctl queue retry --env staging " + str(run), f"retried  run {run}\nfinished, 0 failures\n"))


def full_suite(work: Migration, job: Job) -> str:
    """The output of the whole suite, one line per test file."""
    names = [
        "tests/test_fares.py",
        "tests/test_seats.py",
        "tests/test_timetable.py",
        "tests/queue/test_schedule.py",
        "tests/queue/test_store.py",
        "tests/queue/test_worker.py",
    ]
    names += [f"tests/jobs/test_{other.name}.py" for other in (*work.done[-9:], job)]
    total = max(work.tests, 1)
    return (
        "".join(
            f"{name} {'.' * (2 if 'jobs' in name else number(9, 40, name)):<44}[{min(100, round(100 * (at + 1) / len(names))):>3}%]\n"
            for at, name in enumerate(names)
        )
        + f"\n{total} passed in {number(2900, 4700, 'full', job.name) / 100:.2f}s\n"
    )


KIND_MODULE = {
    "cleanup": "db",
    "state": "sailings",
    "report": "reports",
    "mail": "mail",
    "import": "feeds",
    "alert": "desk",
    "finance": "acquirer",
    "aggregate": "index",
    "retry": "http",
}
NOTES = ("", "desk", "imported", "second try", "by phone", "group", "moved from MV-ALK", "kiosk 3", "web", "corrected", "late vehicle", "split booking")
OWNERS = ("the desk", "the harbour office", "accounting", "the web team", "the bridge")
RUNBOOK = """# {name}

The job {does}. Schedule `{cron}`, harbour time; it runs after {after}. The people who notice first are those of {owner}.

## When it did not run

Look at /var/log/ferryline/cron.log. Then start it by hand:

    ssh cron-1.example.com sudo -u ferry python -m ferryline.cron.{name}

It is safe to start it twice, but not while another run is going on. A usual run does about {rows} rows of `{table}`.

## When it runs and still something is missing

- Is the newest row of `{table}` (by `{key}`) older than {stale} hours? Then the cause lies before this job.
- Is one row stuck? Its `note` says who touched it last. Do not edit it; tell {owner}.
"""
