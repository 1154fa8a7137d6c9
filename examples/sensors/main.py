"""Runs four programs on fields of sensors and draws each over time: pages with a slider, in the folder given or here."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from whence import Update, load_file
from whence.lang.program import output_names
from whence.sensors import SensorNetwork
from whence.sensors.picture import draw_page
from whence.sensors.specs import read_field

HERE = Path(__file__).parent
FIELDS = {"vehicles": "grid:5x5:5", "trajectories": "grid:6x6:4", "tree": "random:40:50:16:4", "fire": "grid:8x8"}


def updates_of(name: str) -> list[Update]:
    lines = (HERE / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    records = [json.loads(line) for line in lines]
    return [Update(each["op"], each["relation"], tuple(each["tuple"]), each["time"]) for each in records]


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, spec in FIELDS.items():
        program = load_file(HERE / f"{name}.dl")
        network = SensorNetwork(program, read_field(spec, program))
        network.feed(network.link_updates())
        network.feed(updates_of(name))
        network.run()
        compared = network.compare()
        rows = [("messages", f"{network.messages:,}"), ("rows", str(compared.right))]
        relations = dict.fromkeys([*output_names(program), *program.base_relations])
        (folder / f"{name}.html").write_text(draw_page(network, name, list(relations), rows), encoding="utf-8")
        print(f"{name}: {network.messages} messages, {compared.right} rows, {compared.missed + compared.false} wrong")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path())
