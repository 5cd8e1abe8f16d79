"""A tf.data service: processes, on this machine or others, that read and decode."""

from __future__ import annotations

import socket
from typing import Any
from urllib.parse import urlsplit

from recordspec._tf import tf
from recordspec.errors import Problem, SpecError, StoreError

Dataset = Any

# Seconds in which a dispatcher takes a connection, or is not there.
_PATIENCE = 10.0


def address_of(service: str) -> tuple[str, int]:
    """Host and port of a dispatcher. Raises SpecError."""
    try:
        parts = urlsplit(service)
        if parts.scheme == "grpc" and parts.hostname and parts.port and service == f"grpc://{parts.netloc}":
            return parts.hostname, parts.port
    except ValueError:  # the port is no number
        pass
    expected = "an address such as grpc://localhost:5050"
    raise SpecError(Problem(path=("service",), expected=expected, got=f"`{service}`"))


def distributed(elements: Dataset, service: str) -> Dataset:
    """Made by the workers of a service, each file by one of them, in the order of their arrival.

    Raises StoreError if nothing listens there: TensorFlow would try again for ever, without a word.
    """
    try:
        socket.create_connection(address_of(service), _PATIENCE).close()
    except OSError as error:
        expected = "the dispatcher of a tf.data service"
        hint = "start it first"
        got = error.strerror or str(error)
        raise StoreError(Problem(where=service, expected=expected, got=got, hint=hint)) from None
    policy = tf.data.experimental.service.ShardingPolicy.DYNAMIC
    return elements.apply(tf.data.experimental.service.distribute(processing_mode=policy, service=service))
