"""A script that tests the types of the package: `make types` runs mypy on it in strict mode.

A line that mypy must reject has a `type: ignore` comment. If mypy accepts the line, it rejects the comment.
"""

from __future__ import annotations

import recordspec as rs

schema: rs.Schema = rs.Schema.load("schemas/pets.yaml")
rows = [{"age": 3}]
manifest: rs.Manifest = rs.write(rows, schema, "data/pets", shards=4, shuffle=7, layout={"blocks": 256})
rs.write(rows, schema, "data/pets", shuffel=7)  # type: ignore[call-arg]
rs.write(rows, schema, "data/pets", shards=[4])  # type: ignore[arg-type]
rs.reshard("data/pets", "data/more", shards={"size": "64MiB"}, compression="gzip")
rs.reshard("data/pets", "data/more", key="age")  # type: ignore[call-arg]

with rs.ShardedWriter(schema, "data/pets", key="name", invalid="quarantine") as writer:
    writer.write({"age": 3})

pipeline: rs.Pipeline = rs.Pipeline.load("configs/pets.yaml")
pipeline.build(jobs=2, force=True)
pipeline.build(job=2)  # type: ignore[call-arg]
for batch in pipeline.dataset("train", batch=32, shuffle={"buffer": 1000, "seed": 1}).take(1):
    print(batch)
pipeline.dataset("train", bacth=32)  # type: ignore[call-arg]
rs.read("data/pets", schema, batch=32, prefetch="auto", cache="memory")
rs.read("data/pets", schema, prefetch="always")  # type: ignore[arg-type]
