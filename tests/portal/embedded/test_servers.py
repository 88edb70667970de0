import os
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from psycopg.conninfo import make_conninfo

from portal.embedded import addresses, postgres, programs, reach, valkey
from portal.embedded.processes import Account, ServerError, service_account
from portal.embedded.supervisor import Child, Program

pytestmark = pytest.mark.slow


@pytest.fixture
def folder() -> Iterator[Path]:
    made = Path(tempfile.mkdtemp(prefix="kilter-servers-"))
    yield made
    shutil.rmtree(made)


@contextmanager
def running(program: Program, log: Path, answers: Callable[[], bool]) -> Iterator[Child]:
    child = Child(program, log)
    child.start(0.0)
    deadline = time.monotonic() + 30
    try:
        while not answers():
            assert child.is_running, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield child
        child.ask_to_stop()
        if child.process is not None:
            child.process.wait(timeout=30)
    finally:
        child.kill_rest()


@contextmanager
def running_postgres(folder: Path) -> Iterator[Child]:
    program = programs.postgres_program(folder, service_account())
    postgres.prepare(folder, service_account(), throwaway=True)  # quick; the server itself syncs
    with running(program, folder / "log", lambda: postgres.answers(folder)) as child:
        yield child


def connect(folder: Path, **changed: str) -> "psycopg.Connection[tuple[object, ...]]":
    settings = addresses.database_settings(folder)
    names = {"host": "HOST", "user": "USER", "password": "PASSWORD", "dbname": "NAME"}
    given = {key: str(settings[name]) for key, name in names.items()}
    return psycopg.connect(make_conninfo(**{**given, **changed}), autocommit=True)


def test_data_survive_a_clean_stop_and_a_kill(folder: Path) -> None:
    with running_postgres(folder), connect(folder) as db:
        db.execute("CREATE EXTENSION btree_gist")
        db.execute("CREATE TABLE kept (n int)")
        db.execute("INSERT INTO kept VALUES (1)")
    with running_postgres(folder) as child:
        with connect(folder) as db:
            db.execute("INSERT INTO kept VALUES (2)")
        assert child.process is not None
        child.process.kill()
        child.process.wait()
    assert (postgres.cluster_folder(folder) / "postmaster.pid").exists()
    with running_postgres(folder), connect(folder) as db:
        assert db.execute("SELECT n FROM kept ORDER BY n").fetchall() == [(1,), (2,)]


def test_postgres_wants_the_password_and_listens_on_no_port(folder: Path) -> None:
    with running_postgres(folder) as child:
        with pytest.raises(psycopg.OperationalError, match="password"):
            connect(folder, password="wrong")
        with pytest.raises(psycopg.OperationalError):
            connect(folder, user="postgres", dbname="postgres", password="")
        with connect(folder) as db:
            assert db.execute("SELECT usesuper FROM pg_user WHERE usename = user").fetchall() == [
                (False,)
            ]
            assert db.execute("SHOW listen_addresses").fetchall() == [("",)]
            shown = db.execute("SHOW server_encoding").fetchall()
            assert shown == [("UTF8",)]
        assert child.process is not None
        server = psutil.Process(child.process.pid)
        assert not server.net_connections(kind="inet")
        assert addresses.secret(folder, "postgres") not in " ".join(server.cmdline())
        assert server.uids().real == service_account().uid
    rules = (postgres.cluster_folder(folder) / "pg_hba.conf").read_text().splitlines()
    methods = {line.split()[-1] for line in rules if line.strip() and not line.startswith("#")}
    assert methods == {"scram-sha-256"}


def test_the_sockets_lie_where_nobody_else_may_look(folder: Path) -> None:
    with running_postgres(folder):
        run = addresses.run_folder(folder).stat()
        assert stat.S_IMODE(run.st_mode) == 0o700
        assert run.st_uid == service_account().uid
    assert not (addresses.run_folder(folder) / "pwfile").exists()


def test_a_lock_file_whose_number_now_is_a_strangers_blocks_nothing(folder: Path) -> None:
    with running_postgres(folder) as child:
        assert child.process is not None
        child.process.kill()
        child.process.wait()
    lock = postgres.cluster_folder(folder) / "postmaster.pid"
    lines = lock.read_text().splitlines()
    lock.write_text("\n".join([str(os.getpid()), *lines[1:]]) + "\n")
    with running_postgres(folder):
        assert lock.read_text().splitlines()[0] != str(os.getpid())


def test_a_server_left_running_is_ended_before_the_next_start(folder: Path) -> None:
    with running_postgres(folder) as left:
        assert left.process is not None
        old = psutil.Process(left.process.pid)
        postgres.prepare(folder, service_account())
        left.process.wait(timeout=10)
        assert not old.is_running()
    with running_postgres(folder):
        pass


def test_an_interrupted_first_try_is_begun_anew(folder: Path) -> None:
    half = folder / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    with running_postgres(folder):
        assert not half.exists()


def test_data_of_another_major_version_are_refused(folder: Path) -> None:
    cluster = postgres.cluster_folder(folder)
    cluster.mkdir()
    (cluster / "PG_VERSION").write_text("12\n")
    with pytest.raises(ServerError, match=r"written by PostgreSQL 12, and this is \d\d\."):
        postgres.prepare(folder, service_account())


def test_a_folder_with_quotes_and_a_long_path_works(folder: Path) -> None:
    odd = folder / 'it\'s "odd", 100%'
    with running_postgres(odd), connect(odd) as db:
        assert db.execute("SELECT 1").fetchall() == [(1,)]
    deep = folder / ("x" * 120)
    try:
        with running_postgres(deep), connect(deep) as db:
            assert db.execute("SELECT 1").fetchall() == [(1,)]
    finally:
        shutil.rmtree(addresses.run_folder(deep))


def test_valkey_wants_the_password_and_writes_nothing(folder: Path) -> None:
    account = service_account()
    program = programs.valkey_program(folder, account)
    with running(program, folder / "log", lambda: valkey.answers(folder)) as child:
        stranger = redis.Redis(
            unix_socket_path=str(addresses.valkey_socket(folder)), retry=valkey.ONCE
        )
        with stranger, pytest.raises(redis.AuthenticationError):
            stranger.ping()
        with redis.Redis.from_url(addresses.redis_url(folder)) as ours:
            ours.set("a", 1)
            assert ours.config_get("port")["port"] == "0"
        assert child.process is not None
        server = psutil.Process(child.process.pid)
        assert addresses.secret(folder, "valkey") not in " ".join(server.cmdline())
        assert server.uids().real == account.uid
    assert not list(addresses.run_folder(folder).iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives ways to other users")
def test_only_the_service_user_gains_search_and_nothing_more(folder: Path) -> None:
    account = service_account()
    assert account != Account(0, 0)
    shut = folder / "shut"
    (shut / "inner").mkdir(parents=True)
    shut.chmod(0o700)
    folder.chmod(0o750)
    assert reach.open_way(shut / "inner", account) == [folder, shut]
    assert reach.open_way(shut / "inner", account) == []
    for path in (folder, shut):
        assert path.stat().st_mode & 0o007 == 0
    assert can(account, "cd", shut / "inner")
    assert not can(account, "ls", shut)
    assert not can(Account(65534, 65534), "cd", shut / "inner")
    assert can(Account(65533, 0), "ls", folder)  # the group keeps what it had
    shut.chmod(0o700)  # takes the right away without a trace in the list
    assert not can(account, "cd", shut / "inner")
    assert reach.open_way(shut / "inner", account) == [shut]
    assert can(account, "cd", shut / "inner")


def can(account: Account, act: str, path: Path) -> bool:
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(account.gid)
        os.setuid(account.uid)
        try:
            os.chdir(path) if act == "cd" else list(path.iterdir())
        except PermissionError:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_postgres_ends_when_its_parent_is_killed(folder: Path) -> None:
    child = os.fork()
    if child == 0:
        with running_postgres(folder):
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)
    lock = postgres.cluster_folder(folder) / "postmaster.pid"
    deadline = time.monotonic() + 15
    while lock.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
