"""Source text of the invented ferry code base: the old cron scripts, the new queue jobs, their tests, and what goes wrong first."""

# ruff: noqa: E501 (long lines are lines of the story)

from __future__ import annotations

from long_jobs import Job

_IMPORTS = {
    "cleanup": "from ferryline.db import connect\nfrom ferryline.media import remove_file",
    "state": "from ferryline.db import connect\nfrom ferryline.events import publish\nfrom ferryline.sailings import load_sailing",
    "report": "import csv\nfrom pathlib import Path\n\nfrom ferryline.db import connect",
    "mail": "from ferryline.db import connect\nfrom ferryline.mail import outbox, render",
    "import": "from ferryline.db import connect, replace_rows, upsert\nfrom ferryline.feeds import fetch_tides, fetch_warnings",
    "alert": "from ferryline.db import connect\nfrom ferryline.desk import desk",
    "finance": "from ferryline.acquirer import acquirer, open_batch\nfrom ferryline.db import connect",
    "aggregate": "from ferryline.db import connect\nfrom ferryline.index import index",
    "retry": "from ferryline.db import connect\nfrom ferryline.http import post",
}

#: How each trap shows in the old script: lines before the loop, and the lines at the end.
_OLD = {
    "lockfile": ('    lock = open("/var/lock/ferryline-{name}.lock", "w")\n    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)\n', ""),
    "localtime": ("    now = datetime.now()  # the server stands in harbour time\n", ""),
    "stdout": ("", '    print("{name}: %d rows" % count)  # cron-report.sh greps this\n'),
    "twice": ("    # cron never starts a second copy, a run takes seconds\n", ""),
    "timeout": ("    socket.setdefaulttimeout(600)\n", ""),
    "swallow": ("", ""),
    "yesterday": ("    yesterday = date.today() - timedelta(days=1)\n", ""),
    "order": ("    time.sleep(900)  # {forerunner} must be through by now\n", ""),
    "mailto": ("", "    if count == 0:\n        print('nothing to send')  # MAILTO in the crontab sends this to the office\n"),
    "chdir": ('    os.chdir("/srv/ferryline")\n', ""),
    "default": ("", ""),
    "exit": ("", "    sys.exit(3 if count == 0 else 0)  # 3: nothing to do, the wrapper knows\n"),
}

_EXTRA_IMPORT = {
    "lockfile": "import fcntl\n",
    "localtime": "from datetime import datetime\n",
    "timeout": "import socket\n",
    "yesterday": "from datetime import date, timedelta\n",
    "order": "import time\n",
    "chdir": "import os\n",
    "exit": "import sys\n",
}


def _indent(lines: tuple[str, ...], by: int) -> str:
    return "".join(" " * by + line + "\n" for line in lines)


def old_script(job: Job) -> str:
    before, after = (part.format(name=job.name, forerunner=job.after) for part in _OLD[job.trap])
    default = ", seen=[]" if job.trap == "default" else ""
    loop = _indent(job.action, 8)
    if job.trap == "swallow":
        loop = "        try:\n" + _indent(job.action, 12) + "        except Exception:\n            continue\n"
    if job.trap == "default":
        loop = f'        if row["{job.key}"] in seen:\n            continue\n        seen.append(row["{job.key}"])\n' + loop
    return (
        f'"""{job.does[0].upper()}{job.does[1:]}. Started by cron."""\n\n{_EXTRA_IMPORT.get(job.trap, "")}{_IMPORTS[job.kind]}\n\n'
        f'QUERY = """\n    SELECT * FROM {job.table}\n    WHERE {job.where}\n    ORDER BY {job.key}\n"""\n\n\n'
        f"def run(db=None{default}):\n    db = db or connect()\n{before}    count = 0\n    for row in db.query(QUERY):\n{loop}        count += 1\n"
        f'    db.commit()\n{after}    return count\n\n\nif __name__ == "__main__":\n    run()\n'
    )


def new_job(job: Job, fixed: bool) -> str:
    """The queue job; before the trap was found, or after."""
    after = f', after=("{job.after}",)' if job.after and (fixed or job.trap != "order") else ""
    unique = ', unique="{slot}"' if fixed and job.trap in ("twice", "lockfile") else ""
    limit = ", timeout_s=120" if fixed and job.trap == "timeout" else ""
    clock = "context.now" if fixed or job.trap not in ("localtime", "yesterday") else "datetime.now()"
    loop = _indent(job.action, 8)
    seen = extra = ""
    if job.trap == "swallow":
        caught = f'FeedError as problem:\n            context.failed(row["{job.key}"], problem)\n' if fixed else "Exception:\n"
        loop = "        try:\n" + _indent(job.action, 12) + f"        except {caught}            continue\n"
    if job.trap == "default" and not fixed:
        seen = ", seen=[]"
        loop = f'        if row["{job.key}"] in seen:\n            continue\n        seen.append(row["{job.key}"])\n' + loop
    tail = f'    context.report("{job.name}", rows=count)\n' if fixed and job.trap in ("stdout", "mailto", "exit") else ""
    if job.trap == "exit" and not fixed:
        tail, extra = "    if count == 0:\n        sys.exit(3)\n", "import sys\n\n"
    root = "    root = context.settings.data_root\n" if fixed and job.trap == "chdir" else ""
    return (
        f'"""{job.does[0].upper()}{job.does[1:]}."""\n\nfrom __future__ import annotations\n\n{extra}from ferryline.queue import Context, job\n'
        f'{_IMPORTS[job.kind]}\n\nQUERY = """\n    SELECT * FROM {job.table}\n    WHERE {job.where}\n    ORDER BY {job.key}\n"""\n\n\n'
        f'@job("{job.name}", schedule="{job.cron}"{after}{unique}{limit})\ndef {job.name}(context: Context{seen}) -> int:\n    db = context.db\n{root}    count = 0\n'
        f"    for row in db.query(QUERY, now={clock}):\n{loop}        count += 1\n{tail}    return count\n"
    )


def test_file(job: Job) -> str:
    body = {
        "lockfile": f'    with pytest.raises(AlreadyQueued):\n        queue.enqueue("{job.name}", slot="0405")\n        queue.enqueue("{job.name}", slot="0405")\n',
        "twice": f'    queue.enqueue("{job.name}", slot="0900")\n    queue.drain(workers=2)\n    assert effects.count("{job.name}") == 1\n',
        "localtime": f'    context = make_context(now="2026-07-01T22:30:00+00:00", zone="Europe/Oslo")\n    assert {job.name}(context) == 1\n',
        "yesterday": f'    context = make_context(now="2026-05-01T00:10:00+00:00")\n    assert {job.name}(context) == 3\n',
        "stdout": f'    context = make_context()\n    {job.name}(context)\n    assert context.reports == [("{job.name}", {{"rows": 2}})]\n',
        "mailto": f'    context = make_context(rows=0)\n    {job.name}(context)\n    assert context.reports == [("{job.name}", {{"rows": 0}})]\n',
        "exit": f"    context = make_context(rows=0)\n    assert {job.name}(context) == 0\n    assert context.reports\n",
        "timeout": f"    context = make_context(feed=SlowFeed(seconds=130))\n    with pytest.raises(JobTimeout):\n        {job.name}(context)\n",
        "swallow": f"    context = make_context(feed=BrokenFeed())\n    {job.name}(context)\n    assert len(context.failures) == 2\n",
        "order": f'    queue.enqueue_all(["{job.name}", "{job.after}"])\n    assert queue.drain_order()[-1] == "{job.name}"\n',
        "chdir": f"    context = make_context(data_root=tmp_path)\n    {job.name}(context)\n    assert list(tmp_path.iterdir())\n",
        "default": f"    first, second = make_context(), make_context()\n    assert {job.name}(first) == {job.name}(second) == 2\n",
    }[job.trap]
    needs = "tmp_path" if job.trap == "chdir" else "queue, effects" if job.trap == "twice" else "queue" if job.trap in ("lockfile", "order") else "make_context"
    return (
        f"from __future__ import annotations\n\nimport pytest\n\nfrom ferryline.jobs.{job.name} import {job.name}\n\n\n"
        f"def test_{job.name}_{TRAP_NAME[job.trap]}({needs}):\n{body}\n\n"
        f'def test_{job.name}_touches_only_due_rows(make_context):\n    context = make_context(table="{job.table}", due=2, not_due=5)\n'
        f'    assert {job.name}(context) == 2\n    assert context.db.changed_keys("{job.table}") == context.due_keys\n'
    )


TRAP_NAME = {
    "lockfile": "is_queued_once_per_slot",
    "twice": "runs_once_with_two_workers",
    "localtime": "uses_utc",
    "yesterday": "takes_the_day_from_its_slot",
    "stdout": "reports_its_rows",
    "mailto": "reports_even_nothing",
    "exit": "returns_instead_of_exiting",
    "timeout": "gives_up_in_time",
    "swallow": "reports_failures",
    "order": "waits_for_its_forerunner",
    "chdir": "needs_no_working_directory",
    "default": "starts_fresh_every_time",
}

#: What the failing test says, and how the finding is put into words.
FAILURE = {
    "lockfile": (
        "DID NOT RAISE <class 'ferryline.queue.errors.AlreadyQueued'>",
        "the lock file did two things: no second copy, and no second start in the same slot. The queue only gives the first, unless the job is unique per slot",
    ),
    "twice": (
        "AssertionError: assert 2 == 1",
        "with two workers the same slot can be taken twice: cron had one host, so nobody noticed that the job is not idempotent",
    ),
    "localtime": (
        "AssertionError: assert 0 == 1",
        "the old script took harbour time from the server's clock; the workers run in UTC, so in summer it looks two hours too early",
    ),
    "yesterday": (
        "AssertionError: assert 0 == 3",
        "`date.today()` is the day on which the worker got round to it. A job that waits past midnight would take the wrong day; it has to come from the slot it was queued for",
    ),
    "stdout": (
        "AssertionError: assert [] == [(...)]",
        "`cron-report.sh` greps the row count from the printed line. A queue job prints into nowhere, so the count must go into the report",
    ),
    "mailto": (
        "AssertionError: assert [] == [(...)]",
        "an empty night was reported only because cron mails what a script prints. Without MAILTO an empty night and a dead job look the same",
    ),
    "exit": ("SystemExit: 3", "`sys.exit(3)` meant 'nothing to do' to the wrapper; in a worker it ends the whole process and takes the other jobs with it"),
    "timeout": ("Failed: Timeout >180.0s", "`socket.setdefaulttimeout` is process-wide: the first job that sets it sets it for all others in the worker"),
    "swallow": (
        "AssertionError: assert 0 == 2",
        "the bare `except Exception: continue` hid every broken feed. It must catch only what the feed raises, and say so",
    ),
    "order": ("AssertionError: assert '{after}' == '{name}'", "the script slept fifteen minutes and hoped. The queue can wait for the other job by name"),
    "chdir": ("AssertionError: assert []", "relative paths after `os.chdir`: a worker must not change its working directory, other jobs share it"),
    "default": (
        "assert 2 == 0",
        "`seen=[]` is made once per process. Cron starts a new process every time; a worker lives for weeks, so the second run skips everything",
    ),
}
