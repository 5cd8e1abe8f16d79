"""Runs one reader in a process: reads all splits of a dataset.

    python -m reading.worker PEER FOLDER

It answers with lines of JSON: first the versions, then `[split, row]` for each row.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from processes import answers, versions
from reading import PEERS
from reading.data import SPLITS, plain


def main() -> None:
    name, folder = sys.argv[1:]
    answer = answers()
    read = PEERS[name].load()(Path(folder))
    answer(versions((PEERS[name].package,)))
    for split in SPLITS:
        for row in read(split):
            answer([split, plain(row)])


if __name__ == "__main__":
    main()
