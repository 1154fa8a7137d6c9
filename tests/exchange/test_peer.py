"""Peers with tables of their own: what users do to them, what others see of it, and what comes back."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.exchange.network import Network
from tests.exchange.vectors import DROS, MUSC, NAMES, OSCI, PERI, null

from whence.exchange.peer import Peer
from whence.exchange.replica import Replica
from whence.exchange.store import Entry, SharedStore
from whence.io import FactError
from whence.lang.diagnostics import ProgramError
from whence.pipeline.files import StateError, StateWarning


@pytest.fixture
def network(tmp_path: Path) -> Network:
    network = Network(tmp_path, NAMES)
    network.join("GUS", "BioSQL", "uBio")
    network.edit("GUS", "G", add={(828917, OSCI, DROS), (2616529, MUSC, MUSC)})
    network.edit("BioSQL", "B", add={(4472, PERI)})
    network.exchange("GUS", "BioSQL", "uBio", "GUS")
    return network


ALL = {(4472, PERI), (null(OSCI), OSCI), (null(OSCI), DROS), (null(MUSC), MUSC)}


def test_tables_hold_what_was_published_and_what_follows(network: Network) -> None:
    assert network.tables("BioSQL") == {"B": ALL}
    assert network.tables("uBio") == {"U": {(OSCI, DROS), (MUSC, MUSC)}}


def test_others_see_only_what_is_published(network: Network) -> None:
    network.edit("uBio", "U", add={(OSCI, PERI)})
    network.exchange("BioSQL")
    assert network.tables("BioSQL") == {"B": ALL}
    with network.open("uBio") as peer:
        assert [tuple(edit) for edit in peer.pending_edits()] == [("+", "local", "uBio.U", (OSCI, PERI))]
        assert peer.publish() is not None
        assert peer.publish() is None
    network.exchange("BioSQL")
    assert network.tables("BioSQL") == {"B": ALL | {(null(OSCI), PERI)}}


def test_a_row_deleted_from_the_table_is_rejected_for_good(network: Network) -> None:
    network.edit("BioSQL", "B", drop={(null(MUSC), MUSC)})
    network.exchange("BioSQL")
    network.edit("GUS", "G", add={(3, MUSC, PERI)})
    network.exchange("GUS", "BioSQL")
    assert (null(MUSC), MUSC) not in network.tables("BioSQL")["B"]
    with network.open("BioSQL") as peer:
        assert peer.instance.part("BioSQL.B", "rejected") == {(null(MUSC), MUSC)}
        peer.unreject("B", (null(MUSC), MUSC))
    assert (null(MUSC), MUSC) in network.tables("BioSQL")["B"]


def test_inserting_a_rejected_row_takes_the_rejection_back(network: Network) -> None:
    network.edit("uBio", "U", drop={(OSCI, DROS)})
    network.exchange("uBio")
    network.edit("uBio", "U", add={(OSCI, DROS)})
    network.exchange("uBio")
    instance = network.replica().instance
    assert not instance.part("uBio.U", "rejected")
    assert instance.part("uBio.U", "local") == {(OSCI, DROS)}


def test_deleting_a_row_of_ones_own_that_others_bring_too_rejects_it(network: Network) -> None:
    network.edit("GUS", "G", add={(5, PERI, MUSC)})
    network.edit("uBio", "U", add={(PERI, MUSC)})
    network.exchange("uBio", "GUS", "uBio")
    network.edit("uBio", "U", drop={(PERI, MUSC)})
    network.exchange("uBio")
    assert (PERI, MUSC) not in network.tables("uBio")["U"]
    instance = network.replica().instance
    assert instance.part("uBio.U", "rejected") == {(PERI, MUSC)}
    assert not instance.part("uBio.U", "local")


def test_deleting_a_row_of_ones_own_only_takes_it_away(network: Network) -> None:
    network.edit("BioSQL", "B", drop={(4472, PERI)})
    network.exchange("BioSQL")
    assert network.tables("BioSQL") == {"B": ALL - {(4472, PERI)}}
    assert not network.replica().instance.part("BioSQL.B", "rejected")


def test_a_row_that_comes_and_goes_between_publications_was_never_there(network: Network) -> None:
    before = network.store.last
    network.edit("BioSQL", "B", add={(1, "x")})
    network.edit("BioSQL", "B", drop={(1, "x")})
    network.exchange("BioSQL")
    assert network.store.last == before


def test_an_edit_published_and_taken_back_before_the_next_import(network: Network) -> None:
    network.edit("BioSQL", "B", add={(1, "x")})
    with network.open("BioSQL") as peer:
        peer.publish()
    network.edit("BioSQL", "B", drop={(1, "x")})
    network.exchange("BioSQL")
    assert network.tables("BioSQL") == {"B": ALL}


def test_a_changed_value_replaces_the_one_that_was_imported(network: Network) -> None:
    network.edit("uBio", "U", drop={(OSCI, DROS)}, add={(OSCI, PERI)})
    network.exchange("uBio", "BioSQL")
    assert network.tables("BioSQL") == {"B": ALL - {(null(OSCI), DROS)} | {(null(OSCI), PERI)}}


def test_two_rows_of_ones_own_with_one_key_are_refused(network: Network) -> None:
    network.edit("GUS", "G", add={(828917, PERI, PERI)})
    with network.open("GUS") as peer, pytest.raises(FactError, match="have the same key"):
        peer.publish()


def test_a_table_that_cannot_be_read_is_named_with_its_lines(network: Network) -> None:
    path = network.path("GUS") / "tables/G.csv"
    path.write_text("id,name,canon\nx,a,b\n1,a\n")
    with network.open("GUS") as peer, pytest.raises(FactError) as caught:
        peer.publish()
    assert list(caught.value.problems) == [f"{path}:2: 'x' is not a number", f"{path}:3: 2 columns, not 3"]


def test_a_preview_changes_nothing(network: Network) -> None:
    network.edit("BioSQL", "B", drop={(4472, PERI)})
    network.edit("GUS", "G", drop={(2616529, MUSC, MUSC)})
    with network.open("GUS") as peer:
        peer.publish()
    before, last = network.tables("BioSQL"), network.store.last
    with network.open("BioSQL") as peer:
        preview = peer.preview()
    assert preview.delta.deleted["BioSQL.B"] == {(4472, PERI), (null(MUSC), MUSC)}
    assert (network.tables("BioSQL"), network.store.last) == (before, last)
    network.exchange("BioSQL")
    assert network.tables("BioSQL") == {"B": ALL - preview.delta.deleted["BioSQL.B"]}


def test_distrust_takes_out_what_only_the_distrusted_support(network: Network) -> None:
    with network.open("BioSQL") as peer:
        result = peer.trust("distrusts B(b, n) through m2")
        assert result.delta.deleted == {"BioSQL.B": {(null(OSCI), DROS)}}
        result = peer.trust_again("BioSQL distrusts B(b, n) through m2.")
        assert result.delta.inserted == {"BioSQL.B": {(null(OSCI), DROS)}}
        with pytest.raises(ProgramError):
            peer.trust("distrusts nobody")


def test_a_peer_changes_only_what_concerns_it(network: Network) -> None:
    with (
        network.open("BioSQL") as peer,
        pytest.raises(StateError, match="BioSQL cannot change what concerns GUS and uBio"),
    ):
        peer.change((("test.peers", NAMES.replace("m2: G(g, n, c) -> U(n, c).", "")),))


def test_a_peer_joins_with_data_of_its_own_and_leaves(network: Network) -> None:
    text = NAMES + "peer New { N(name: symbol). }\nm4: B(b, n) -> N(n).\nm5: N(n) -> exists b. B(b, n).\n"
    with pytest.raises(StateError, match="there is no peer New"):
        Peer.create(network.path("Old"), "New", network.folder / "store")
    peer = Peer.create(network.path("New"), "New", network.folder / "store", files=(("test.peers", text),))
    peer.close()
    network.edit("New", "N", add={("Apis mellifera",)})
    network.exchange("New", "BioSQL")
    assert network.tables("New") == {"N": {("Apis mellifera",), (OSCI,), (DROS,), (MUSC,), (PERI,)}}
    assert (null("Apis mellifera", of="m5_b"), "Apis mellifera") in network.tables("BioSQL")["B"]
    with network.open("New") as peer:
        peer.change((("test.peers", NAMES),))
    network.exchange("BioSQL")
    assert network.tables("BioSQL") == {"B": ALL}


def test_a_copy_made_at_once_equals_one_brought_forward(network: Network) -> None:
    network.edit("uBio", "U", drop={(OSCI, DROS)}, add={(OSCI, PERI)})
    network.exchange("uBio", "BioSQL")
    with network.open("BioSQL") as peer:
        peer.trust("distrusts uBio")
    replica = Replica.at(network.store, 1)
    for number in range(1, network.store.last + 1):
        replica.advance(number)
        fresh = Replica.at(network.store, number)
        assert fresh.hash == replica.hash
        for name in fresh.instance.confederation.relations:
            assert fresh.instance.relation(name) == replica.instance.relation(name), number


def test_old_versions_stay_explainable(network: Network) -> None:
    number = network.store.last
    with network.open("BioSQL") as peer:
        peer.trust("distrusts GUS")
    assert network.tables("BioSQL") == {"B": {(4472, PERI)}}
    assert Replica.at(network.store, number).instance.relation("BioSQL.B") == ALL


def test_a_folder_is_one_process_at_a_time(network: Network) -> None:
    with network.open("GUS"), pytest.raises(StateError, match="is in use"):
        network.open("GUS")
    with pytest.raises(StateError, match="is not a peer's folder"):
        Peer.open(network.folder / "nobody")
    with pytest.raises(StateError, match="is a peer's folder already"):
        Peer.create(network.path("GUS"), "GUS", network.folder / "store")


BOTH = """
peer A { R(id: number, name: symbol) key (id). }
peer B { S(id: number, name: symbol) key (id). }
m: A.R(i, n) <-> B.S(i, n).
"""


@pytest.mark.parametrize("accepts", [True, False])
def test_corrections_travel_back_where_they_are_accepted(tmp_path: Path, accepts: bool) -> None:
    network = Network(tmp_path, BOTH + ("A accepts deletions of B.\n" if accepts else ""))
    network.join("A", "B")
    network.edit("A", "R", add={(1, "mose"), (2, "fly")})
    network.exchange("A", "B")
    assert network.tables("B") == {"S": {(1, "mose"), (2, "fly")}}
    network.edit("B", "S", drop={(1, "mose")}, add={(1, "mouse")})
    network.exchange("B", "A", "B")
    assert network.tables("B") == {"S": {(1, "mouse"), (2, "fly")}}
    # What A put in itself wins at A, unless A lets B take it out.
    assert network.tables("A") == {"R": {(1, "mouse" if accepts else "mose"), (2, "fly")}}
    last = network.store.last
    network.exchange("A", "B", "A")
    assert network.store.last == last, "updates do not echo"
    network.edit("A", "R", drop={(2, "fly")})
    network.exchange("A", "B")
    assert network.tables("B")["S"] == {(1, "mouse")}


def test_a_command_reads_only_what_is_behind_the_checkpoint(network: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    network.exchange("GUS", "uBio", "BioSQL")
    network.edit("GUS", "G", add={(5, PERI, PERI)})
    network.exchange("GUS")
    read: list[int] = []
    content = SharedStore.content

    def counted(store: SharedStore, entry: Entry) -> dict[str, object]:
        read.append(entry.number)
        return content(store, entry)

    monkeypatch.setattr(SharedStore, "content", counted)
    last = network.store.last
    with network.open("BioSQL") as peer:
        assert peer.import_().delta.inserted["BioSQL.B"] == {(null(PERI), PERI)}
    assert set(read) == {last}


def test_a_damaged_checkpoint_is_made_again(network: Network) -> None:
    network.exchange("BioSQL")
    path = network.path("BioSQL") / "tables.image"
    path.write_bytes(path.read_bytes().replace(b"Musca", b"Mosca"))
    with network.open("BioSQL") as peer, pytest.warns(StateWarning, match="what is in it is derived anew"):
        assert peer.instance.relation("BioSQL.B") == ALL
    path.unlink()
    network.edit("GUS", "G", add={(5, PERI, PERI)})
    network.exchange("GUS", "BioSQL")
    assert path.exists()
    assert network.tables("BioSQL") == {"B": ALL | {(null(PERI), PERI)}}
