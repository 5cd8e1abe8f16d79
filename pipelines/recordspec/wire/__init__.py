"""Bytes: the values of an Example's keys, the Example itself, and the TFRecord file around it."""
