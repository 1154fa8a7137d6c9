"""Three databases share what they know about species: a conflict, a source that is not trusted, a correction that travels.

The peers' tables are in SQLite databases, which the script edits with SQL as users do. Everything happens in a folder that is
gone afterwards; give one to keep it.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from whence import Variant
from whence.exchange import Peer, read_files, show_row, sort_rows
from whence.provenance import why

HERE = Path(__file__).parent
PEERS = ("GUS", "BioSQL", "uBio")
NULL = Variant("m1_b", ("Oscinella frit",))


class Story:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        files = tuple((Path(name).name, text) for name, text in read_files(HERE / "species.peers"))
        for name in PEERS:
            first = files if name == "GUS" else None
            Peer.create(folder / name, name, folder / "store", files=first, where="sqlite:own.db").close()
            self.exchange(name, quiet=True)

    def sql(self, name: str, *statements: str) -> None:
        with closing(sqlite3.connect(self.folder / name / "own.db")) as connection:
            for statement in statements:
                print(f"{name}> {statement}")
                connection.execute(statement)
            connection.commit()

    def exchange(self, *names: str, quiet: bool = False) -> None:
        for name in names:
            with Peer.open(self.folder / name) as peer:
                result = peer.import_()
            if quiet:
                continue
            print(f"{name} imports")
            for op, side in (("-", result.delta.deleted), ("+", result.delta.inserted)):
                for relation in sorted(side):
                    for row in sort_rows(side[relation]):
                        print(f"  {op} {show_row(relation, row)}")
            for conflict in result.deferred:
                rows = " or ".join(show_row(conflict.relation, row) for row, _ in conflict.rows)
                print(f"  ? {rows}")

    def peer(self, name: str) -> Peer:
        return Peer.open(self.folder / name)


def main(folder: Path) -> None:
    story = Story(folder)
    print("Each database gets its rows.")
    story.sql(
        "GUS",
        "INSERT INTO G VALUES (828917, 'Oscinella frit', 'Drosophila melanogaster')",
        "INSERT INTO G VALUES (2616529, 'Musca domestica', 'Musca domestica')",
        "INSERT INTO N VALUES ('Oscinella frit', 'frit fly'), ('Musca domestica', 'hose fly')",
    )
    story.sql("BioSQL", "INSERT INTO B VALUES (4472, 'Periplaneta americana')")
    story.sql("uBio", "INSERT INTO V VALUES ('Musca domestica', 'house fly')")
    story.exchange("GUS", "uBio", "BioSQL")

    print("\nWhy does BioSQL have that?")
    with story.peer("BioSQL") as peer:
        print(why(peer.why(), "BioSQL.B", (NULL, "Drosophila melanogaster")))

        print("\nTwo common names of one species: somebody has to decide, and does.")
        peer.resolve("C", ("Musca domestica", "hose fly"))

        print("GUS's canonical names are not to be trusted.")
        peer.trust("distrusts m2")
        for reason in peer.whynot("B", (NULL, "Drosophila melanogaster")):
            print("\n".join(reason.lines("  ")))

    print(
        "\nIt was a mistake, which BioSQL mends at home. GUS accepts that, and gets the right name from uBio by way of BioSQL."
    )
    story.sql("BioSQL", "DELETE FROM C WHERE common = 'hose fly'")
    story.exchange("BioSQL", "GUS")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with TemporaryDirectory() as kept:
            main(Path(kept))
