"""What was published cannot be changed, and what was not published by its peer is refused, by name."""

from __future__ import annotations

import json
import threading
from hashlib import sha256
from pathlib import Path

import pytest
from tests.exchange.network import Network
from tests.exchange.vectors import NAMES, OSCI, PERI

from whence.exchange.instance import Edit
from whence.exchange.replica import Replica, edits_to_json
from whence.exchange.signing import signer
from whence.exchange.store import EDITS, Entry, Refused, SharedStore, canonical
from whence.pipeline.files import Damaged, StateError


@pytest.fixture
def network(tmp_path: Path) -> Network:
    network = Network(tmp_path, NAMES, signed=("GUS",))
    network.join("GUS", "BioSQL", "uBio")
    network.edit("GUS", "G", add={(1, OSCI, PERI)})
    network.edit("BioSQL", "B", add={(4472, PERI)})
    network.exchange("GUS", "BioSQL")
    return network


def publish(network: Network, peer: str, *edits: Edit) -> Entry:
    entry = network.store.publish(peer, EDITS, edits_to_json(edits))
    assert entry is not None
    return entry


def test_a_changed_content_is_refused_and_named(network: Network) -> None:
    entry = network.store.read(2)
    path = network.folder / f"store/contents/{entry.content}.json"
    path.write_bytes(path.read_bytes().replace(PERI.encode(), OSCI.encode()))
    with pytest.raises(Refused, match=f"{entry.content}.json: the content of entry 2 is not what GUS published"):
        network.exchange("uBio")


def test_a_changed_entry_breaks_the_chain(network: Network) -> None:
    entry = network.store.read(2)
    content = canonical(edits_to_json([]))
    digest = sha256(content).hexdigest()
    (network.folder / f"store/contents/{digest}.json").write_bytes(content)
    path = network.store.path_of(2)
    path.write_bytes(Entry(2, "GUS", EDITS, digest, entry.previous, entry.id, entry.signature).to_bytes())
    with pytest.raises(Refused, match=r"00000002.json: this is not signed by GUS"):
        network.replica()
    # Who has read it already sees that it is another one.
    with pytest.raises(StateError, match=r"0000000.\.json: this does not follow on entry"):
        list(network.store.entries())


def test_entries_that_are_gone_are_missed(network: Network) -> None:
    for number in range(2, network.store.last + 1):
        network.store.path_of(number).unlink()
    with pytest.raises(Refused, match="were read before, and are gone"):
        network.exchange("BioSQL")


def test_a_gap_and_nonsense_are_named(network: Network) -> None:
    publish(network, "uBio")
    network.store.path_of(3).unlink()
    with pytest.raises(Damaged, match=r"00000003.json: the file is missing"):
        network.exchange("uBio")
    network.store.path_of(2).write_text("{")
    with pytest.raises(Refused, match=r"00000002.json: this is not an entry"):
        network.replica()


@pytest.mark.parametrize(
    ("peer", "edit", "reason"),
    [
        ("BioSQL", Edit("+", "local", "uBio.U", ("a", "b")), "BioSQL cannot publish rows of uBio.U"),
        ("GUS", Edit("+", "local", "GUS.G", (1, "a", "b")), "this is not signed by GUS"),
        ("BioSQL", Edit("+", "local", "BioSQL.B", (1,)), "BioSQL.B has other columns"),
        ("BioSQL", Edit("+", "local", "BioSQL.B", (1, 2)), "its content cannot be read"),
        ("BioSQL", Edit("+", "local", "BioSQL.X", (1, 2)), "there is no relation BioSQL.X"),
        ("BioSQL", Edit("*", "local", "BioSQL.B", (1, "x")), "its content cannot be read"),
    ],
)
def test_what_a_peer_cannot_have_published_is_refused(network: Network, peer: str, edit: Edit, reason: str) -> None:
    before = network.tables("uBio")
    number = network.store.last + 1
    publish(network, peer, edit)
    with network.open("uBio") as other, pytest.raises(Refused, match=f"{number:08}.json: {reason}"):
        other.import_()
    with pytest.raises(Refused, match=f"{number:08}.json: {reason}"):
        network.replica()
    assert Replica.at(network.store, number - 1).number == number - 1
    assert before == {"U": set()}


def test_only_the_holder_of_the_key_signs(network: Network) -> None:
    sign = signer(network.path("GUS") / "key")
    assert sign is not None
    assert (network.path("GUS") / "key").stat().st_mode & 0o077 == 0
    entry = network.store.publish("GUS", EDITS, edits_to_json([]), sign=sign)
    assert entry is not None
    assert network.replica().number == entry.number


def test_peers_that_publish_at_once_come_one_after_the_other(tmp_path: Path) -> None:
    store = SharedStore.create(tmp_path)
    begin = threading.Barrier(4)

    def write(name: str) -> None:
        begin.wait()
        for number in range(15):
            assert store.publish(name, EDITS, {"edits": [], "by": name, "number": number}) is not None

    threads = [threading.Thread(target=write, args=(f"P{at}",)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    entries = list(store.entries())
    assert [entry.number for entry in entries] == list(range(1, 61))
    for name in ("P0", "P1", "P2", "P3"):
        own = [store.content(entry)["number"] for entry in entries if entry.peer == name]
        assert own == list(range(15))


def test_two_changes_of_the_confederation_at_once_do_not_undo_each_other(network: Network) -> None:
    with network.open("uBio") as one:
        one.trust("distrusts GUS")
    with network.open("BioSQL") as other:
        other.trust("distrusts uBio")
    policies = {policy.peer for policy in network.replica().instance.confederation.distrusts}
    assert policies == {"uBio", "BioSQL"}


def test_entries_are_plain_json(network: Network) -> None:
    entry = json.loads(network.store.path_of(1).read_text())
    assert sorted(entry) == ["content", "id", "kind", "number", "peer", "previous", "signature"]
