"""`whence exchange`, from making peers to asking about their rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Whence = Callable[..., Result]

TEXT = """\
peer A { R(id: number, name: symbol) key (id). }
peer B { S(id: number, name: symbol) key (id). }
peer C { T(id: number, name: symbol) key (id). N(name: symbol). }
fromA: A.R(i, n) -> C.T(i, n).
fromB: B.S(i, n) -> C.T(i, n).
on: C.T(_, n) -> C.N(n).
"""


@pytest.fixture
def peers(whence: Whence) -> Whence:
    Path("all.peers").write_text(TEXT)
    assert whence("exchange", "init", "a", "all.peers", "--peer", "A", "--store", "store").exit_code == 0
    for name in ("B", "C"):
        assert whence("exchange", "init", name.lower(), "--peer", name, "--store", "store").exit_code == 0
    table("a/tables/R.csv", "id,name", "1,one", "2,two")
    table("b/tables/S.csv", "id,name", "1,uno")
    for folder in ("a", "b"):
        assert whence("exchange", "import", folder).exit_code == 0
    return whence


def table(path: str, *lines: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text("".join(f"{line}\n" for line in lines))


def test_a_confederation_is_checked(whence: Whence) -> None:
    Path("all.peers").write_text(TEXT)
    assert whence("exchange", "check", "all.peers").stdout == "ok: 3 peers, 4 relations, 3 mappings, 0 policies\n"
    Path("all.peers").write_text(TEXT + "bad: C.T(i, n) -> exists z. Q(z).\nC distrusts D.\n")
    result = whence("exchange", "check", "all.peers")
    assert result.exit_code == 1
    assert "all.peers:7:29: error[W1002]: there is no relation Q" in result.stderr
    assert "all.peers:8:1: error[W1002]: there is no peer or mapping D" in result.stderr


def test_a_folder_has_a_file_for_each_peer(whence: Whence) -> None:
    Path("texts").mkdir()
    for number, line in enumerate(TEXT.splitlines()):
        Path(f"texts/{number}.peers").write_text(f"{line}\n")
    assert whence("exchange", "check", "texts").exit_code == 0
    Path("texts/9.peers").write_text("\nm: Q(x) -> R(x, x).\n")
    assert "texts/9.peers:2:4: error[W1002]" in whence("exchange", "check", "texts").stderr


def test_a_conflict_waits_and_is_resolved(peers: Whence) -> None:
    result = peers("exchange", "import", "c")
    assert result.stdout == (
        "read 2 entries of A, B\n"
        "decided:\n"
        '  lost C.T(1, "one")\n'
        '  lost C.T(1, "uno")\n'
        "changed:\n"
        '  + C.N("two")\n'
        '  + C.T(2, "two")\n'
        "to be decided, C.T with key 1:\n"
        '  C.T(1, "one")  costs 0\n'
        '  C.T(1, "uno")  costs 0\n'
    )
    assert "lost a conflict at C, which is not resolved yet" in peers("exchange", "whynot", "c", 'T(1, "one")').stdout
    assert "to be decided" in peers("exchange", "resolve", "c").stdout
    assert '+ C.T(1, "uno")' in peers("exchange", "resolve", "c", 'T(1, "uno")').stdout
    assert peers("exchange", "resolve", "c").stdout == "nothing to decide\n"
    assert Path("c/tables/T.csv").read_text() == "id,name\n1,uno\n2,two\n"
    assert "to be decided" in peers("exchange", "resolve", "c", 'T(1, "uno")', "--undo").stdout


def test_previews_change_nothing(peers: Whence) -> None:
    before = sorted(path.name for path in Path("store/log").iterdir())
    assert "would change" not in peers("exchange", "import", "c", "--preview").stdout
    assert '- C.N("two")' not in peers("exchange", "import", "c", "--preview").stdout
    table("a/tables/R.csv", "id,name", "2,two")
    result = peers("exchange", "publish", "a", "--preview")
    assert '  - A.R(1, "one")\nwould change, for all who import it:\n' in result.stdout
    assert sorted(path.name for path in Path("store/log").iterdir()) == before


def test_rows_are_rejected_and_let_back(peers: Whence) -> None:
    peers("exchange", "import", "c")
    assert peers("exchange", "reject", "c", 'T(2, "two")', "--preview").stdout == (
        'would change:\n  - C.N("two")\n  - C.T(2, "two")\n'
    )
    assert '- C.T(2, "two")' in peers("exchange", "reject", "c", 'T(2, "two")').stdout
    assert peers("exchange", "whynot", "c", 'T(2, "two")').stdout == 'C rejected C.T(2, "two")\n'
    assert '+ C.T(2, "two")' in peers("exchange", "reject", "c", 'T(2, "two")', "--undo").stdout
    refused = peers("exchange", "reject", "c", 'R(2, "two")')
    assert (refused.exit_code, refused.stderr) == (1, "error: A.R is A's: C decides about its own rows\n")


def test_policies_come_and_go(peers: Whence) -> None:
    peers("exchange", "import", "c")
    assert peers("exchange", "trust", "c", "distrusts B", "--preview").stdout == "nothing changes\n"
    result = peers("exchange", "trust", "c", "distrusts B")
    assert '+ C.T(1, "one")' in result.stdout
    assert peers("exchange", "trust", "c").stdout == "C#1: C distrusts B.\n"
    assert peers("exchange", "whynot", "c", 'T(1, "uno")').stdout == (
        'fromB brings C.T(1, "uno"), but by C#1: C distrusts B.\n'
    )
    assert peers("exchange", "trust", "c", "C#1", "--undo").exit_code == 0
    assert peers("exchange", "trust", "c").stdout == ""
    wrong = peers("exchange", "trust", "c", "distrusts X")
    assert (wrong.exit_code, "there is no peer or mapping X" in wrong.stderr) == (1, True)


def test_questions(peers: Whence) -> None:
    peers("exchange", "import", "c")
    proof = peers("exchange", "why", "c", 'N("two")').stdout
    assert proof.startswith('C.N("two")  by on\n└─ C.T(2, "two")  by fromA\n   └─ A.R(2, "two")\n')
    assert json.loads(peers("exchange", "why", "c", 'N("two")', "--json").stdout)["proofs"]
    assert "digraph" in peers("exchange", "why", "c", 'N("two")', "--all", "--format", "dot").stdout
    assert peers("exchange", "why", "c", 'N("two")', "--semiring", "posbool").stdout == '{{A.R(2, "two")}}\n'
    assert peers("exchange", "why", "c", 'N("two")', "--semiring", "boolean", "--from", "B").stdout == "false\n"
    assert peers("exchange", "why", "c", 'N("two")', "--cost").stdout == 'C.N("two") costs C 0\n'
    assert peers("exchange", "uses", "a", 'R(2, "two")').stdout == (
        'C.T(2, "two")  by fromA\nC.N("two")  by fromA, on\n'
    )
    assert peers("exchange", "query", "c", "ans(n) :- T(i, n), i > 1").stdout == "two\n"
    missing = peers("exchange", "why", "c", 'N("three")')
    assert missing.exit_code == 1
    assert missing.stderr == 'error: there is no C.N("three"): whence exchange whynot says why\n'
    early = peers("exchange", "why", "c", 'N("two")', "--at", "1")
    assert (early.exit_code, early.stderr) == (1, 'error: there is no C.N("two"): not as of entry 1\n')
    odd = peers("exchange", "why", "c", "N(")
    assert (odd.exit_code, "is not a row" in odd.stderr) == (1, True)
    assert peers("exchange", "whynot", "c", 'N("two")').exit_code == 1


def test_old_exchanges_stay_explainable(peers: Whence) -> None:
    peers("exchange", "import", "c")
    peers("exchange", "trust", "c", "distrusts A")
    assert peers("exchange", "why", "c", 'T(2, "two")').exit_code == 1
    assert "by fromA" in peers("exchange", "why", "c", 'T(2, "two")', "--at", "3").stdout


def test_status_and_verification(peers: Whence) -> None:
    peers("exchange", "import", "c")
    table("c/tables/N.csv", "name", "two", "more")
    shown = peers("exchange", "status", "c").stdout
    assert "C has read 4 of 4 entries" in shown
    assert '+ C.N("more")' in shown
    assert "to be decided, C.T with key 1:" in shown
    assert peers("exchange", "verify", "c").stdout == "ok: 4 entries read, C.T, C.N\n"
    assert peers("exchange", "verify", "store").stdout == "ok: 4 entries, 3 peers\n"
    baseline = Path("c/baseline.json")
    baseline.write_text(baseline.read_text().replace("two", "tow"))
    damaged = peers("exchange", "verify", "c")
    assert damaged.exit_code == 1
    assert 'C.T(2, "two") is missing' in damaged.stdout
    entry = next(Path("store/contents").iterdir())
    entry.write_bytes(entry.read_bytes() + b" ")
    forged = peers("exchange", "verify", "store")
    assert (forged.exit_code, "is not what" in forged.stderr) == (1, True)


def test_a_change_of_mappings(peers: Whence) -> None:
    peers("exchange", "import", "c")
    Path("all.peers").write_text(TEXT.replace("on: C.T(_, n) -> C.N(n).\n", ""))
    assert peers("exchange", "change", "c", "all.peers", "--preview").stdout == 'would change:\n  - C.N("two")\n'
    assert peers("exchange", "change", "c", "all.peers").stdout.startswith('changed:\n  - C.N("two")\nto be decided')
    Path("all.peers").write_text(TEXT.replace("fromA: A.R(i, n) -> C.T(i, n).\n", ""))
    foreign = peers("exchange", "change", "b", "all.peers")
    assert (foreign.exit_code, "B cannot change what concerns A and C only" in foreign.stderr) == (1, True)


def test_a_signed_peer(whence: Whence) -> None:
    Path("all.peers").write_text(TEXT)
    refused = whence("exchange", "init", "a", "--peer", "A", "--store", "store", "--sign")
    assert refused.exit_code == 2
    assert whence("exchange", "init", "a", "all.peers", "--peer", "A", "--store", "store", "--sign").exit_code == 0
    table("a/tables/R.csv", "id,name", "1,one")
    assert whence("exchange", "publish", "a").exit_code == 0
    assert whence("exchange", "verify", "store").stdout == "ok: 2 entries, 3 peers\n"
    Path("a/key").unlink()
    table("a/tables/R.csv", "id,name", "2,one")
    whence("exchange", "publish", "a")
    unsigned = whence("exchange", "verify", "store")
    assert (unsigned.exit_code, "this is not signed by A" in unsigned.stderr) == (1, True)


def test_what_is_not_a_peer_is_named(whence: Whence) -> None:
    Path("empty").mkdir()
    for command in ("status", "publish", "import", "verify"):
        result = whence("exchange", command, "empty")
        assert result.exit_code == 1
        assert "empty is not a" in result.stderr


def test_queries_in_rules_and_in_sql(peers: Whence) -> None:
    assert peers("exchange", "import", "c").exit_code == 0
    assert peers("exchange", "query", "c", "SELECT name FROM T WHERE id = 2").stdout == "two\n"
    assert peers("exchange", "query", "c", "ans(n) :- T(2, n).").stdout == "two\n"
    assert peers("exchange", "query", "c", "SELECT max(id) FROM T").stdout == "2\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["why", "c", 'T(2, "two")', "--at", "99"], "there is no entry 99: the last is "),
        (["why", "c", 'T(2, "two")', "--all", "--through", "m9"], "there is no mapping m9; there are fromA, fromB, on"),
        (["why", "c", 'T(2, "two")', "--from", "D"], "there is no peer D; there are A, B, C"),
        (["query", "c", "ans(x) :- T(x)."], "T has 2 columns, not 1"),
        (["query", "c", ""], "error["),
        (["init", "d", "--peer", "C", "--store", "store", "--tables", "oracle:x"], "there are no tables at oracle:x"),
    ],
)
def test_mistakes_are_told(peers: Whence, arguments: list[str], message: str) -> None:
    result = peers("exchange", *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert not Path("d/peer.json").exists()
