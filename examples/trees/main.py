"""Patient records under clearances: what each reader sees, and how that follows when a record changes."""

from __future__ import annotations

from pathlib import Path

from whence.semiring import Access, Boolean
from whence.trees import Maintained, annotate, load_query_file, read_document, read_policy
from whence.trees.clearance import view_for
from whence.trees.render import annotations_of, one_line, text_lines

HERE = Path(__file__).parent
ACCESS = Access()


def main() -> None:
    query = load_query_file(HERE / "wards.xq", ACCESS)
    policy = read_policy(HERE / "clearances.txt", ACCESS)
    versions = []
    for name in ("patients.xml", "patients_next.xml"):
        forest = read_document(HERE / name, ACCESS).forest
        for path, level in policy:
            forest = annotate(forest, path, level, ACCESS)
        versions.append(forest)

    kept = Maintained(query, {"d": versions[0]}, ACCESS)
    for reader in ("confidential", "secret"):
        print(f"{reader} sees")
        for line in text_lines(view_for(kept.answer(), reader, ACCESS), annotations_of(Boolean())):
            print(f"  {line}")
    print("then")
    for change in kept.replace("d", versions[1]):
        print(f"  {'/'.join((*change.path, one_line(change.tree, ACCESS)))}: {change.before} -> {change.after}")


if __name__ == "__main__":
    main()
