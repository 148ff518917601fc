"""Where a study lies, and who runs which of its trials: a file of one run, or a shared database.

A trial that was begun and is not finished is anybody's whose run holds it. What holds it is let go
by the system, or by the server, when a run ends in whichever way.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol

import optuna
import sqlalchemy
from optuna.storages import RDBStorage
from sqlalchemy.engine import URL, make_url

from tlm.errors import InputError
from tlm.files import hold_writable

_SQLITE, _POSTGRESQL = "sqlite", "postgresql"
_DRIVER = "postgresql+psycopg"
_ALLOWED = "sqlite:///FILE or postgresql://USER@HOST/DATABASE"
_WAIT_S = 60
#: In place of a trial's number: the choice of new trials.
_CHOICE = -1
#: In place of a study's: those of Optuna begin at 1.
_DATABASE = 0


class Claims(Protocol):
    """Who runs what."""

    #: Whether other runs may be at work on the study.
    is_shared: bool

    def choosing(self, study_id: int) -> AbstractContextManager[None]:
        """Within it no other run chooses trials."""

    def claim(self, study_id: int, number: int) -> bool:
        """Take a trial; False: another run has it."""

    def release(self, study_id: int, number: int) -> None:
        """Let go of it."""


class AloneClaims:
    """A file that one run at a time works on."""

    is_shared = False

    @contextmanager
    def choosing(self, study_id: int) -> Iterator[None]:
        """Nobody else does."""
        yield

    def claim(self, study_id: int, number: int) -> bool:
        """All are this run's."""
        return True

    def release(self, study_id: int, number: int) -> None:
        """Nobody waits for it."""


class ServerClaims:
    """Advisory locks of a PostgreSQL server, which it drops with the connection."""

    is_shared = True

    def __init__(self, connection: sqlalchemy.Connection) -> None:
        self._connection = connection

    @contextmanager
    def choosing(self, study_id: int) -> Iterator[None]:
        """Wait until no other run chooses."""
        self._ask("pg_advisory_lock", study_id, _CHOICE)
        try:
            yield
        finally:
            self._ask("pg_advisory_unlock", study_id, _CHOICE)

    def claim(self, study_id: int, number: int) -> bool:
        """Take a trial if no connection has it."""
        return bool(self._ask("pg_try_advisory_lock", study_id, number))

    def release(self, study_id: int, number: int) -> None:
        """Let go of it."""
        self._ask("pg_advisory_unlock", study_id, number)

    def _ask(self, function: str, study_id: int, number: int) -> object:
        query = sqlalchemy.text(f"SELECT {function}(:study, :number)")
        return self._connection.execute(query, {"study": study_id, "number": number}).scalar()


class _LoggedConnection(sqlite3.Connection):
    """Changes go to a log, which waits for the disk now and then, not at each of them.

    Without power the last ones are lost, and their trials run again; the study stays whole.
    """

    def __init__(self, *where: Any, **how: Any) -> None:
        super().__init__(*where, **how)
        self.execute("PRAGMA journal_mode = WAL")
        self.execute("PRAGMA synchronous = NORMAL")


@contextmanager
def opened(storage: str) -> Iterator[tuple[RDBStorage, Claims]]:
    """A database, and who runs which of its trials.

    Args:
        storage: Its address.

    Raises:
        InputError: if it is no address of a known kind, cannot be opened, or another run has it.
    """
    url = _address(storage)
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with _file(url) if url.get_backend_name() == _SQLITE else _server(url) as found:
            yield found
    except ImportError as error:
        raise InputError(
            f"--storage: found {url.drivername} without its library; allowed after "
            "'pip install wafertlm[postgresql]'"
        ) from error
    except (sqlalchemy.exc.SQLAlchemyError, optuna.exceptions.StorageInternalError) as error:
        cause = str(error.__cause__ or error).split("\n")[0]
        raise InputError(f"--storage: {url.render_as_string()}: {cause}") from error


@contextmanager
def _file(url: URL) -> Iterator[tuple[RDBStorage, Claims]]:
    # A lock of this process alone: what it starts does not have it, and may outlive it for a while.
    _made_folder(url)
    path = Path(f"{url.database}.lock")
    was_there = path.exists()
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        how = {"timeout": _WAIT_S, "factory": _LoggedConnection}
        try:
            kept = RDBStorage(str(url), engine_kwargs={"connect_args": how})
        except BaseException:
            if not was_there:
                path.unlink(missing_ok=True)
            raise
        try:
            yield kept, AloneClaims()
        finally:
            kept.engine.dispose()
    except BlockingIOError as error:
        raise InputError(
            f"--storage: {url.database}: found another run at work on it; allowed: one at a time, "
            "or several on a PostgreSQL server"
        ) from error
    finally:
        os.close(lock)


def _made_folder(url: URL) -> None:
    folder = Path(url.database or "").parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--storage: {folder}: cannot be made: {error.strerror}") from error


@contextmanager
def _server(url: URL) -> Iterator[tuple[RDBStorage, Claims]]:
    engine = sqlalchemy.create_engine(url, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        claims = ServerClaims(connection)
        with claims.choosing(_DATABASE):  # the first run makes the tables
            kept = RDBStorage(url.render_as_string(hide_password=False))
        try:
            yield kept, claims
        finally:
            kept.engine.dispose()
    engine.dispose()


def _address(storage: str) -> URL:
    try:
        url = make_url(storage)
    except sqlalchemy.exc.ArgumentError as error:
        raise InputError(f"--storage: found '{storage}'; allowed: {_ALLOWED}") from error
    kind = url.get_backend_name()
    if kind == _POSTGRESQL:
        return url.set(drivername=_DRIVER)
    if kind != _SQLITE or not url.database:
        raise InputError(f"--storage: found '{url.render_as_string()}'; allowed: {_ALLOWED}")
    file = Path(url.database)
    hold_writable(file)
    if file.exists() and not file.is_file():
        raise InputError(f"--storage: {file}: found a device or a pipe; allowed: a file")
    return url
