"""Changes as Parquet: a folder for each relation, a file for each epoch that changed it."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from whence.io.bags import as_often
from whence.io.changes import Changes
from whence.io.updates import reported_writing
from whence.lang.program import Program, output_names
from whence.lang.types import Tuple
from whence.pipeline.columns import encode_rows
from whence.pipeline.sinks import Sink
from whence.pipeline.snapshots import write_table


class ParquetSink(Sink):
    """Writes `FOLDER/RELATION/EPOCH.parquet` with the columns `epoch`, `op` and those of the relation.

    Epoch 0 is the beginning: what an earlier run wrote there goes.
    """

    def __init__(self, folder: str | Path, program: Program) -> None:
        self.folder = Path(folder)
        self._program = program
        self._outputs = output_names(program)

    def write(self, epoch: int, changes: Changes) -> None:
        changes = as_often(self._program, changes)
        for name in self._outputs:
            gone, come = changes.deleted.get(name, []), changes.inserted.get(name, [])
            folder = self.folder / quote(name, safe="")
            path = folder / f"{epoch:012d}.parquet"
            if epoch == 0:
                with reported_writing(folder):
                    for old in folder.glob("[0-9]" * 12 + ".parquet"):
                        old.unlink()
            if gone or come:
                with reported_writing(path):
                    path.parent.mkdir(parents=True, exist_ok=True)
                write_table(path, self._table(epoch, name, gone, come))

    def _table(self, epoch: int, name: str, gone: list[Tuple], come: list[Tuple]) -> pa.Table:
        fields = self._program.relations[name].fields
        ops = ["-"] * len(gone) + ["+"] * len(come)
        columns = [pa.repeat(epoch, len(ops)), pa.array(ops, pa.string())]
        columns += encode_rows([*gone, *come], fields, self._program.types)
        return pa.table(columns, names=["epoch", "op", *(each.name for each in fields)])
