"""Puts what the page of `whence serve` is made with into wheels: packages of npm, checked against their digests."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Assets(BuildHookInterface[Any]):
    """An editable installation does without: `make setup` fetches them into the environment."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if self.target_name != "wheel" or version == "editable":
            return
        root = Path(self.root)
        # Whence itself cannot be imported here: what it depends on is not installed.
        spec = spec_from_file_location("whence_assets", root / "src" / "whence" / "serve" / "assets.py")
        assert spec is not None
        assert spec.loader is not None
        assets = module_from_spec(spec)
        sys.modules[spec.name] = assets
        spec.loader.exec_module(assets)
        folder = root / "build" / "page"
        assets.fetch(folder)
        build_data["shared_data"][str(folder)] = str(assets.FOLDER)
