"""Change capture in PostgreSQL: triggers write every change of a table into whence_capture.changes, in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

# In one transaction, while nobody writes to the table: no row is missed, and none is there twice.
_INSTALL = """
DO $$ BEGIN
    IF NOT EXISTS (SELECT FROM pg_index WHERE indrelid = {text}::regclass AND indisprimary) THEN
        RAISE EXCEPTION '% has no primary key', {text} USING
            HINT = 'Relations are sets: of two equal rows, deleting one would delete the tuple. Add a primary key.';
    END IF;
    IF EXISTS (SELECT FROM pg_trigger WHERE tgrelid = {text}::regclass AND tgname = 'whence_capture') THEN
        RETURN;
    END IF;
    LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE;
    INSERT INTO whence_capture.tables (relation, snapshot)
        VALUES ({name}, nextval(pg_get_serial_sequence('whence_capture.changes', 'seq')))
        ON CONFLICT (relation) DO UPDATE SET snapshot = excluded.snapshot;
    INSERT INTO whence_capture.changes (relation, op, row) SELECT {name}, '+', to_jsonb(t) FROM {table} AS t;
    CREATE TRIGGER whence_capture AFTER INSERT OR UPDATE OR DELETE ON {table}
        FOR EACH ROW EXECUTE FUNCTION whence_capture.record({name});
    CREATE TRIGGER whence_capture_truncate BEFORE TRUNCATE ON {table}
        FOR EACH STATEMENT EXECUTE FUNCTION whence_capture.record({name});
END $$;
"""

_REMOVE = """
DROP TRIGGER IF EXISTS whence_capture ON {table};
DROP TRIGGER IF EXISTS whence_capture_truncate ON {table};
"""


@dataclass(frozen=True, slots=True)
class TableName:
    """A table and its schema, as they are spelled in the catalog."""

    schema: str
    table: str

    @classmethod
    def parse(cls, text: str) -> TableName:
        """`link` is in the schema public; `net.link` names its own.

        >>> TableName.parse("net.link")
        TableName(schema='net', table='link')
        """
        schema, dot, table = text.rpartition(".")
        if not table or (dot and not schema) or "." in schema:
            raise ValueError(f"{text!r} is not a table: write TABLE or SCHEMA.TABLE")
        return cls(schema or "public", table)

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        return f"{quote(self.schema)}.{quote(self.table)}"


def quote(identifier: str) -> str:
    """An identifier as SQL spells it whatever is in it.

    >>> print(quote('a "b"'))
    "a ""b\"""
    """
    return '"' + identifier.replace('"', '""') + '"'


def capture_sql(tables: Iterable[str]) -> str:
    """Starts the capture of the tables, with the rows that they have; tables that are captured stay as they are."""
    prepare = files(__package__).joinpath("capture.sql").read_text(encoding="utf-8")
    return prepare + "".join(_fill(_INSTALL, TableName.parse(table)) for table in tables)


def release_sql(tables: Iterable[str]) -> str:
    """Ends the capture of the tables. What was captured stays until it is forgotten."""
    return "".join(_fill(_REMOVE, TableName.parse(table)) for table in tables)


def _fill(template: str, name: TableName) -> str:
    return template.format(table=name.quoted, name=_literal(str(name)), text=_literal(name.quoted))


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
