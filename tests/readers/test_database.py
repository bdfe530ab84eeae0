"""SQLite files are hostile input: the original is left alone, and nothing in a schema runs, hangs or fills the memory."""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from workbench import readers
from workbench.errors import ReadError
from workbench.readers.database import Database

COLUMNS = ("id", "session_id", "message_data")


def made(path: Path, *statements: str) -> Path:
    with sqlite3.connect(path) as connection:
        for statement in statements:
            connection.execute(statement)
    connection.close()
    return path


TABLE = "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT, created_at TEXT)"
ROW = """INSERT INTO agent_messages VALUES (1, 's', '{"role": "user", "content": "q"}', '2026-11-30 20:44:54')"""


@pytest.fixture(autouse=True)
def _copies_are_removed(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("copies")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield
    assert list(folder.iterdir()) == []


def test_the_copy_is_private_and_read_only(tmp_path: Path) -> None:
    with Database(made(tmp_path / "t.db", TABLE, ROW)) as database:
        assert database.tables == {"agent_messages": ("id", "session_id", "message_data", "created_at")}
        assert [row[:2] for row in database.rows("agent_messages", ("id", "missing", "session_id"), order=("id",))] == [(1, None)]
        (folder,) = Path(tempfile.gettempdir()).iterdir()
        assert os.name == "nt" or folder.stat().st_mode & 0o077 == 0
        connection = database._connection
        for pragma, value in (("query_only", 1), ("trusted_schema", 0)):
            assert connection.execute(f"PRAGMA {pragma}").fetchone() == (value,)
        for statement in ("DELETE FROM agent_messages", "CREATE TABLE x (y)", "ATTACH ':memory:' AS other"):
            with pytest.raises(sqlite3.Error):
                connection.execute(statement)


def test_the_log_is_read_and_nothing_is_written_beside_it(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    writer = sqlite3.connect(path)
    writer.execute("PRAGMA journal_mode=WAL")
    writer.execute("PRAGMA wal_autocheckpoint=0")
    writer.execute(TABLE)
    writer.execute(ROW)
    writer.commit()
    away = tmp_path / "away"
    away.mkdir()
    for name in ("t.db", "t.db-wal"):
        shutil.copy(tmp_path / name, away / name)
    writer.close()
    before = {item.name: (item.read_bytes(), item.stat().st_mtime_ns) for item in away.iterdir()}
    assert readers.read(away / "t.db").messages[0].text == "q"
    assert before == {item.name: (item.read_bytes(), item.stat().st_mtime_ns) for item in away.iterdir()}


@pytest.mark.skipif(os.name == "nt", reason="links need rights on Windows")
def test_a_log_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    path = made(tmp_path / "t.db", TABLE, ROW)
    secret = tmp_path / "secret"
    secret.write_text("x" * 100)
    (tmp_path / "t.db-wal").symlink_to(secret)
    with Database(path) as database:
        assert database.size == path.stat().st_size


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"
VIEW = f"CREATE VIEW agent_messages AS {ENDLESS} SELECT x AS id, 's' AS session_id, 'x' AS message_data FROM n"
GENERATED = "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT, message_data TEXT AS (hex(zeroblob(100000000))))"


@pytest.mark.parametrize("schema", [VIEW, GENERATED, "CREATE VIRTUAL TABLE agent_messages USING fts5(id, session_id, message_data)"])
def test_what_is_no_true_table_is_not_read(tmp_path: Path, schema: str) -> None:
    path = made(tmp_path / "t.db", schema, "CREATE TABLE other (a)")
    with Database(path) as database:
        columns = database.tables.get("agent_messages", ())
    assert not {*COLUMNS} <= {*columns}
    with pytest.raises(ReadError, match=r"no reader knows t\.db \(an SQLite database\)"):
        readers.read(path)


def test_a_default_that_takes_no_room_in_the_file(tmp_path: Path) -> None:
    """A column that was added later stands in no row: each gives its default, however long that is."""
    rows = "INSERT INTO agent_messages (id, session_id) WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 20000) SELECT x, 's' FROM n"
    path = made(
        tmp_path / "t.db",
        "CREATE TABLE agent_messages (id INTEGER PRIMARY KEY, session_id TEXT)",
        rows,
        f"ALTER TABLE agent_messages ADD COLUMN message_data TEXT DEFAULT '{'x' * 500_000}'",
    )
    with Database(path) as database, pytest.raises(ReadError, match="holds more than the file can store"):
        list(database.rows("agent_messages", COLUMNS))
    with pytest.raises(ReadError, match="holds more than the file can store"):
        readers.read(path)


def test_a_scan_that_takes_too_long_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made(tmp_path / "t.db", TABLE, ROW)
    with Database(path) as database:
        started = time.process_time()
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            database._connection.execute(f"{ENDLESS} SELECT count(*) FROM n").fetchall()
        assert time.process_time() - started < 20


def test_names_in_a_schema_are_data(tmp_path: Path) -> None:
    name = 'x"; DROP TABLE y; --'
    path = made(tmp_path / "t.db", f"""CREATE TABLE "{name.replace('"', '""')}" ("a""b" TEXT)""", f"""INSERT INTO "{name.replace('"', '""')}" VALUES ('v')""")
    with Database(path) as database:
        assert list(database.rows(name, ('a"b',))) == [("v",)]


def test_damaged_files(tmp_path: Path) -> None:
    rows = [f"""INSERT INTO agent_messages VALUES ({at}, 's', '{{"role": "user", "content": "{"q" * 900}"}}', '')""" for at in range(2, 40)]
    data = made(tmp_path / "t.db", TABLE, ROW, *rows).read_bytes()
    path, rng = tmp_path / "d.db", random.Random(4)
    outcomes = set()
    for number in range(120):
        damaged = bytearray(data if number % 3 else data[: rng.randrange(17, len(data))])
        for _ in range(rng.randint(1, 40)):
            damaged[rng.randrange(16, len(damaged))] = rng.randrange(256)
        path.write_bytes(damaged)
        try:
            outcomes.add(readers.read(path).source.format)
        except ReadError as error:
            assert str(error).isprintable()  # noqa: PT017
            outcomes.add("refused")
    assert outcomes == {"openai-agents", "refused"}


def test_what_is_no_database_at_all_says_so(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    path.write_bytes(b"SQLite format 3\x00" + b"\xff" * 5_000)
    with pytest.raises(ReadError, match=r"t\.db is an SQLite database that cannot be read \(file is not a database\)"):
        readers.read(path)
