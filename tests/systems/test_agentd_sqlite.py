"""agentd's SQLite file: killed, full, damaged, shared, read-only, and no database at all."""

import os
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from contextlib import closing, contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from tests.shared import ROOT
from workbench.errors import WorkbenchError
from workbench.systems.agentd import Registry, SqliteStore, StoreError, User

NAMES = [f"c{number}" for number in range(6)]

#: Checkpoints six contexts over and over, and one that comes and goes, and says after each which one it was.
WRITER = """
import sys
from workbench.systems.agentd import Registry, SqliteStore, User
store, registry = SqliteStore(sys.argv[1]), Registry(1000)
turn = int(sys.argv[2])
store._db.execute("PRAGMA wal_autocheckpoint = " + sys.argv[3])
while True:
    turn += 1
    for name in ("c0", "c1", "c2", "c3", "c4", "c5"):
        context = registry.conversation(name, None, now=turn)
        context.turns = turn
        context.append(User("x" * (turn * 977 % 9000)), now=turn)
        context.messages = context.messages[-3:]
    registry.remove("odd") if turn % 2 == 0 else registry.conversation("odd", None, now=turn)
    registry.checkpoint(store)
    print(turn, flush=True)
"""


def read(path):
    with SqliteStore(path) as store:
        registry = Registry(1000)
        assert registry.load(store) == []
    return registry


def turn_of(path):
    """The checkpoint that the file holds; it holds the whole of one."""
    registry = read(path)
    if not len(registry):
        return 0
    turns = {registry.get(name).turns for name in NAMES}
    assert len(turns) == 1, "contexts of different checkpoints"
    (turn,) = turns
    assert registry.ids() == NAMES + (["odd"] if turn % 2 else [])
    return turn


def changed(registry, turn):
    for name in NAMES:
        context = registry.conversation(name, None, now=turn)
        context.turns = turn
        context.append(User("x" * 3000), now=turn)
    if turn % 2:
        registry.conversation("odd", None, now=turn)
    else:
        registry.remove("odd")


def all_dirty(registry):
    return all(registry.get(name).dirty for name in NAMES)


# Killed


@pytest.mark.parametrize("after", range(6))
def test_a_program_killed_while_it_writes_leaves_the_last_complete_checkpoint(tmp_path, after):
    path = tmp_path / "contexts.db"
    turn = 0
    merge = "5" if after % 2 else "1000"  # how often SQLite moves the log into the file
    for part in range(3):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(turn), merge], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        assert writer.stdout.readline() == f"{turn + 1}\n"
        time.sleep(0.003 + 0.0071 * after + 0.0023 * part)
        writer.send_signal(signal.SIGKILL)
        said = writer.stdout.read().split("\n")[:-1]
        writer.stdout.close()
        assert writer.wait() == -signal.SIGKILL
        last = int(said[-1]) if said else turn + 1
        turn = turn_of(path)
        assert turn in (last, last + 1)  # what it had said is kept; one more may have been complete


def started(act):
    """Run `act` in a child process."""
    child = os.fork()
    if not child:
        try:
            act()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    return child


def ended(child):
    return os.waitpid(child, 0)[1]


def in_a_child(act):
    """Run `act` in a child process; whether it was killed. Nothing else may end it but its own end."""
    status = ended(started(act))
    assert status in (0, signal.SIGKILL)
    return status == signal.SIGKILL


def test_a_kill_at_any_step_of_a_checkpoint_leaves_the_one_before_or_after(tmp_path):
    """SQLite runs a statement in steps; the child kills itself at the n-th, for one n after another."""
    path = tmp_path / "contexts.db"
    seen = set()
    turn, steps, killed = 0, 0, True
    while killed:
        before = turn
        killed = in_a_child(partial(checkpoint_or_die, path, before + 1, steps))
        turn = turn_of(path)
        assert turn in (before, before + 1)
        seen.add((killed, turn - before))
        steps += 1 if steps < 40 else 7
    assert seen >= {(True, 0), (False, 1)}
    assert steps > 60


def checkpoint_or_die(path, turn, steps):
    registry = Registry(1000)
    store = SqliteStore(path)
    registry.load(store)
    changed(registry, turn)
    count = iter(range(steps, -1, -1))
    store._db.set_progress_handler(lambda: None if next(count) else os.kill(os.getpid(), signal.SIGKILL), 1)
    registry.checkpoint(store)


def test_a_kill_while_the_file_is_made_leaves_one_that_can_be_used(tmp_path):
    steps, killed = 0, True
    while killed:
        path = tmp_path / f"{steps}.db"
        killed = in_a_child(partial(open_or_die, path, steps))
        with SqliteStore(path) as store:
            registry = Registry(1000)
            changed(registry, 1)
            registry.checkpoint(store)
        assert turn_of(path) == 1
        steps += 1
    assert steps > 10


def open_or_die(path, statements):
    count = iter(range(statements, -1, -1))
    connect = sqlite3.connect

    def watched(*args, **kwargs):
        database = connect(*args, **kwargs)
        database.set_trace_callback(lambda _: next(count) or os.kill(os.getpid(), signal.SIGKILL))
        return database

    sqlite3.connect = watched
    SqliteStore(path)


# Failures that the program survives


class FailingDatabase:
    """A connection whose n-th statement fails."""

    def __init__(self, database, good, error):
        self._database, self._good, self._error = database, good, error

    def __getattr__(self, name):
        return getattr(self._database, name)

    def _run(self, run, statement, *given):
        if statement != "ROLLBACK":
            self._good -= 1
            if self._good < 0:
                raise self._error
        return run(statement, *given)

    def execute(self, statement, *given):
        return self._run(self._database.execute, statement, *given)

    def executemany(self, statement, *given):
        return self._run(self._database.executemany, statement, *given)


@pytest.mark.parametrize("error", [sqlite3.OperationalError("disk I/O error"), KeyboardInterrupt(), MemoryError()], ids=lambda error: type(error).__name__)
def test_a_failure_at_any_statement_changes_nothing_and_the_next_checkpoint_writes_all(tmp_path, error):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        changed(registry, 1)
        registry.checkpoint(store)
        changed(registry, 2)
        database, failed = store._db, 0
        while True:
            store._db = FailingDatabase(database, failed, error)
            with suppress(StoreError, KeyboardInterrupt, MemoryError):
                registry.checkpoint(store)
                break
            failed += 1
            assert all_dirty(registry)
            assert turn_of(path) == 1
            assert not database.in_transaction
    assert failed > 10
    assert turn_of(path) == 2


def test_a_failure_at_any_step_changes_nothing(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        changed(registry, 1)
        registry.checkpoint(store)
        changed(registry, 2)
        steps = 0
        while True:
            count = iter(range(steps, -1, -1))
            store._db.set_progress_handler(lambda count=count: next(count, 0) == 0, 1)
            with suppress(StoreError):
                registry.checkpoint(store)
                break
            store._db.set_progress_handler(None, 1)
            assert all_dirty(registry)
            if steps % 10 == 0:
                assert turn_of(path) == 1
            steps += 3
    assert steps > 60
    assert turn_of(path) == 2


def test_a_full_disk_is_told_in_one_line_and_can_be_mended(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        changed(registry, 1)
        registry.checkpoint(store)
        changed(registry, 2)
        registry.get("c3").append(User("x" * 500_000), now=2)
        pages = store._db.execute("PRAGMA page_count").fetchone()[0]
        store._db.execute(f"PRAGMA max_page_count = {pages + 5}")
        with pytest.raises(StoreError, match=r"^contexts\.db cannot be written: database or disk is full; nothing was changed: make room .*$"):
            registry.checkpoint(store)
        assert all_dirty(registry)
        assert turn_of(path) == 1
        store._db.execute("PRAGMA max_page_count = 100000")
        assert registry.checkpoint(store) == NAMES
    assert turn_of(path) == 2


# Two programs


def test_who_would_overwrite_the_other_is_refused(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as one, SqliteStore(path) as two:
        first, second = Registry(1000), Registry(1000)
        first.conversation("shared", None, now=1)
        first.checkpoint(one)
        second.load(two)

        # Each its own contexts: nobody is in the way.
        first.conversation("a", None, now=2)
        second.conversation("b", None, now=2)
        first.checkpoint(one)
        second.checkpoint(two)
        assert read(path).ids() == ["a", "b", "shared"]

        # The same one.
        second.get("shared").append(User("of the second"), now=3)
        second.checkpoint(two)
        first.get("shared").append(User("of the first"), now=3)
        first.get("a").append(User("more"), now=3)
        for _ in range(2):
            with pytest.raises(StoreError, match="another program has changed") as refused:
                first.checkpoint(one)
            assert len(str(refused.value).splitlines()) == 1
        assert first.get("a").dirty
        assert read(path).get("shared").messages == [User("of the second")]
        assert read(path).get("a").messages == []

        first.remove("shared")
        with pytest.raises(StoreError, match="another program has changed"):
            first.checkpoint(one)

        first.load(one)
        first.get("shared").append(User("of the first"), now=4)
        assert first.checkpoint(one) == ["shared"]
        assert read(path).get("shared").messages == [User("of the second"), User("of the first")]


def test_a_store_that_another_program_is_writing_waits_and_then_says_so(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path, timeout=0.05) as store, closing(sqlite3.connect(path, isolation_level=None)) as other:
        registry = Registry(1000)
        changed(registry, 1)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"^contexts\.db is in use by another program; try again$"):
            registry.checkpoint(store)
        assert all_dirty(registry)
        other.execute("ROLLBACK")
        registry.checkpoint(store)
        assert turn_of(path) == 1


def test_a_reader_sees_the_checkpoint_before_while_one_is_written(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        changed(registry, 1)
        registry.checkpoint(store)
        store._db.execute("BEGIN IMMEDIATE")
        store._db.execute("DELETE FROM contexts")
        assert turn_of(path) == 1
        store._db.execute("ROLLBACK")


def test_one_process_may_open_a_file_twice_and_close_one(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        store._db.execute("BEGIN IMMEDIATE")
        SqliteStore(path).close()
        with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as other, pytest.raises(sqlite3.OperationalError, match="locked"):
            other.execute("BEGIN IMMEDIATE")  # the lock of the first still holds
        store._db.execute("ROLLBACK")


# The file


def test_only_its_owner_may_read_the_file(tmp_path):
    before = os.umask(0)
    try:
        path = tmp_path / "contexts.db"
        with SqliteStore(path) as store:
            registry = Registry(1000)
            changed(registry, 1)
            registry.checkpoint(store)
            files = sorted(tmp_path.iterdir())
            assert len(files) == 3  # with its log and the log's index
            assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
        path.chmod(0o644)
        SqliteStore(path).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    finally:
        os.umask(before)


def test_a_new_file_is_never_open_to_others(tmp_path, monkeypatch):
    monkeypatch.setattr(Path, "chmod", lambda *_: pytest.fail("it was open to others at first"))
    SqliteStore(tmp_path / "contexts.db").close()


def test_two_programs_may_make_the_file_at_once(tmp_path):
    path = tmp_path / "contexts.db"

    class Second(SqliteStore):
        looked = False

        def _transaction(self, kind, end="COMMIT"):
            if kind == "IMMEDIATE" and not self.looked:  # the first makes it between this one's look and its own making
                self.looked = True
                with SqliteStore(path) as first:
                    first.save({"a": b"{}"}, ())
            return super()._transaction(kind, end)

    with Second(path) as second:
        assert second.looked
        assert [record.id for record in second.load()] == ["a"]


def test_many_programs_may_make_and_write_one_file(tmp_path):
    for round_ in range(8):
        path = tmp_path / f"{round_}.db"
        start = time.monotonic() + 0.02
        children = [started(partial(work_on, path, f"c{child}", start)) for child in range(4)]
        assert [ended(child) for child in children] == [0] * 4
        registry = read(path)
        assert [len(registry.get(context_id).messages) for context_id in registry.ids()] == [3] * 4


def work_on(path, name, start):
    while time.monotonic() < start:
        pass
    with SqliteStore(path, timeout=30) as store:
        registry = Registry(1000)
        for now in range(3):
            registry.conversation(name, None, now).append(User("x" * 500), now)
            registry.checkpoint(store)


def test_opening_waits_for_a_program_that_is_at_work_and_then_says_so(tmp_path):
    path = tmp_path / "contexts.db"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("PRAGMA journal_mode = DELETE")
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"^contexts\.db is in use by another program; try again$"):
            SqliteStore(path, timeout=0.05)
        other.execute("ROLLBACK")
    SqliteStore(path, timeout=0.05).close()


def test_a_commit_is_flushed_and_logged(tmp_path):
    with SqliteStore(tmp_path / "contexts.db") as store:
        assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)


def refused(path):
    with pytest.raises(StoreError) as error:
        SqliteStore(path)
    assert isinstance(error.value, WorkbenchError)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize("content", [b"x", b"hello\n" * 1000, b"\x00" * 5000, b"SQLite format 3\x00" + b"\xff" * 4000])
def test_what_is_no_database_is_refused_and_left_alone(tmp_path, content):
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    path.chmod(0o644)
    assert refused(path) == "notes.txt is not a database; give the path of a database or of a new file"
    assert path.read_bytes() == content
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert list(tmp_path.iterdir()) == [path]


def test_an_empty_file_becomes_a_store(tmp_path):
    path = tmp_path / "contexts.db"
    path.touch()
    assert read(path).ids() == []


def other_database(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        for statement in statements:
            database.execute(statement)


@pytest.mark.parametrize("statement", ["CREATE TABLE t (a)", "PRAGMA application_id = 7", "PRAGMA user_version = 1"])
def test_the_database_of_another_program_is_left_alone(tmp_path, statement):
    path = tmp_path / "other.db"
    other_database(path, statement)
    content = path.read_bytes()
    assert refused(path) == "other.db is the database of another program; give another path"
    assert path.read_bytes() == content


def test_a_newer_schema_is_refused(tmp_path):
    path = tmp_path / "contexts.db"
    SqliteStore(path).close()
    other_database(path, "PRAGMA user_version = 2")
    assert refused(path) == "contexts.db was written by a newer workbench (schema 2, this one knows 1); update the workbench"


def test_what_is_no_file_or_nowhere_is_refused(tmp_path):
    assert refused(tmp_path).endswith("is not a file; give the path of a file")
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe") == "pipe is not a file; give the path of a file"
    assert refused("/dev/null") == "null is not a file; give the path of a file"
    assert "No such file or directory" in refused(tmp_path / "missing" / "contexts.db")
    assert "cannot be opened" in refused("a\x00b\n\x1b[31m")


def test_a_name_is_never_read_as_anything_else(tmp_path):
    path = tmp_path / "a?mode=memory#%41 é.db"
    SqliteStore(path).close()
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@contextmanager
def without_rights(folder):
    """As one who may not write in the folder; root may everything, so root becomes nobody for a while."""
    folder.chmod(0o555)
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        folder.chmod(0o755)


def test_a_folder_without_the_right_to_write_is_told():
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to nobody
        folder = Path(name)
        SqliteStore(folder / "old.db").close()
        with without_rights(folder):
            for file in ("new.db", "old.db"):
                assert refused(folder / file).startswith(f"{file} cannot be opened: ")
        assert [file.name for file in folder.iterdir()] == ["old.db"]


def test_a_closed_store_says_so(tmp_path):
    store = SqliteStore(tmp_path / "contexts.db")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.load()


# Damage


def test_a_damaged_page_hides_only_the_records_on_it(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        for number in range(40):
            registry.conversation(f"c{number:02}", None, now=1).append(User("x" * 6000), now=1)
        registry.checkpoint(store)
        ids = registry.ids()
    content = path.read_bytes()
    pages = range(0, len(content), 4096)
    lost_with = Counter()
    for page in pages:
        path.write_bytes(content[:page] + b"\xa5" * 4096 + content[page + 4096 :])
        for log in tmp_path.glob("contexts.db-*"):
            log.unlink()
        try:
            with SqliteStore(path) as store:
                registry = Registry(1000)
                lost = registry.load(store)
        except StoreError as error:
            lost_with[str(error)] += 1
        else:
            lost_with[len(lost)] += 1
            assert sorted([*lost, *registry.ids()]) == ids
    # The pages of the records; the index; the table's root; the counter; the header.
    assert lost_with == {
        1: len(pages) - 4,
        0: 1,
        40: 1,
        "contexts.db is damaged; replace it by a copy": 1,
        "contexts.db is not a database; give the path of a database or of a new file": 1,
    }


def test_a_damaged_schema_is_told_even_where_its_words_are_no_text(tmp_path):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        registry.conversation("c", None, now=1)
        registry.checkpoint(store)
    content = path.read_bytes()
    start = content.index(b"CREATE TABLE contexts")
    told = set()
    for at in range(start - 60, start + 60):
        path.write_bytes(content[:at] + b"\xc3" + content[at + 1 :])
        for log in tmp_path.glob("contexts.db-*"):
            log.unlink()
        try:
            with SqliteStore(path) as store:
                Registry(1000).load(store)
        except StoreError as error:
            told.add(str(error))
    assert "contexts.db is damaged; replace it by a copy" in told
    assert all(len(text.splitlines()) == 1 and text.startswith("contexts.db ") for text in told)


@pytest.mark.parametrize("value", ["1", "1.5", "'text'", "x'ff'", "CAST(x'ff' AS TEXT)", "x''", "zeroblob(100)"])
def test_a_record_of_another_type_is_lost_alone(tmp_path, value):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        changed(registry, 2)
        registry.checkpoint(store)
        store._db.execute(f"UPDATE contexts SET state = {value} WHERE id = ?", (b"c2",))
        again = Registry(1000)
        assert again.load(store) == ["c2"]
        assert again.ids() == [name for name in NAMES if name != "c2"]


@pytest.mark.parametrize("value", ["x'ff'", "CAST(x'ff' AS TEXT)"])
def test_an_id_that_is_no_text_is_lost_alone(tmp_path, value):
    path = tmp_path / "contexts.db"
    with SqliteStore(path) as store:
        registry = Registry(1000)
        changed(registry, 2)
        registry.checkpoint(store)
        store._db.execute(f"UPDATE contexts SET id = {value} WHERE id = ?", (b"c2",))
        again = Registry(1000)
        assert again.load(store) == ["\\xff"]
        assert again.ids() == [name for name in NAMES if name != "c2"]


@pytest.mark.parametrize("statement", ["DROP TABLE contexts", "DROP TABLE counter", "DELETE FROM counter", "UPDATE counter SET generation = 'x'"])
def test_a_file_without_its_tables_is_told_in_one_line(tmp_path, statement):
    path = tmp_path / "contexts.db"
    SqliteStore(path).close()
    other_database(path, statement)
    with pytest.raises(StoreError) as error:
        read(path)
    assert len(str(error.value).splitlines()) == 1
