"""A session put down in a file, so that the next one to need it derives nothing.

It is there to be quick, never needed: a file that is damaged, of another program or of another version of Whence is as good as
none. The first line says what the rest is, with a checksum; `of` is what the file's owner knows it by, so that one that was
left behind by something older is not taken for the last.
"""

from __future__ import annotations

import json
import os
import warnings
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from whence.backends.local.image import Image, split
from whence.engine.profile import Profile
from whence.engine.windows import Windows
from whence.io.json_text import Json
from whence.limits import Limits
from whence.pipeline.files import PARTIAL, StateWarning, sync_folder
from whence.prepared import Prepared
from whence.session import Session

_FORMAT = 1


def keep(path: Path, session: Session, of: Json) -> bool:
    """Whether there is such a file now: some sessions cannot be put down, and a full disk is no reason to fail."""
    image = session.image()
    if image is None:
        path.unlink(missing_ok=True)
        return False
    digest = blake2b(digest_size=8)
    for piece in image.pieces:
        digest.update(piece)
    head = {"format": _FORMAT, "of": of, "checksum": digest.hexdigest(), "image": image.head}
    partial = path.with_name(path.name + PARTIAL)
    try:
        with partial.open("wb") as file:
            file.write(json.dumps(head, ensure_ascii=False).encode(errors="surrogatepass") + b"\n")
            file.writelines(image.pieces)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        path.unlink(missing_ok=True)
        warnings.warn(
            f"{path} cannot be written ({error.strerror}); what is in it is derived anew", StateWarning, stacklevel=2
        )
        return False
    return True


@dataclass(frozen=True)
class Kept:
    """What a file holds: what its owner knows it by, and the image."""

    of: Any
    image: Image

    def session(
        self,
        prepared: Prepared,
        *,
        windows: Windows | None = None,
        limits: Limits = Limits(),  # noqa: B008 - immutable
        profile: Profile | None = None,
    ) -> Session | None:
        """None if it is another program's, or was made with functions from Python, which may be others by now."""
        if prepared.program.functions:
            return None
        return Session.resumed(prepared, self.image, windows=windows, limits=limits, profile=profile)


def read_kept(path: Path) -> Kept | None:
    """None if there is none, or it is damaged: somebody may want to know that, so it is a warning."""
    try:
        data = memoryview(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        warnings.warn(
            f"{path} cannot be read ({error.strerror}); what is in it is derived anew", StateWarning, stacklevel=2
        )
        return None
    try:
        end = bytes(data[: 1 << 26]).index(b"\n")
        head = json.loads(bytes(data[:end]).decode(errors="surrogatepass"))
        body = data[end + 1 :]
        if head["format"] != _FORMAT:
            return None
        if head["checksum"] == blake2b(body, digest_size=8).hexdigest():
            return Kept(head["of"], Image(head["image"], split(head["image"], body)))
    except (ValueError, KeyError, TypeError):
        pass  # the warning says what is done about it
    warnings.warn(f"{path} is not as it was written; what is in it is derived anew", StateWarning, stacklevel=2)
    return None
