"""The batches of a training: how fast they are made, and how long a step waits for them."""
