# A time series with gaps in a CSV file, in windows, to a model of the next value.
python "$RAW" series
# --
cat > windows.yaml <<'YAML'
schema: windows
features:
  past: {dtype: float32, shape: [24]}
  hour: int64
  next: float32
YAML
cat > config.yaml <<'YAML'
schema: windows.yaml
data: data
write: {splits: {train: 80, test: 20}, group_by: week, shuffle: {seed: 1}}
read: {batch: 64, shuffle: {buffer: 10000, seed: 1}}
fit:
  inputs: [past, hour]
  targets: next
  encode: {past: normalize, hour: one_hot}
YAML
cat > train.py <<'PYTHON'
import json
import keras
import numpy as np
import pandas as pd
import recordspec as rs

keras.utils.set_random_seed(1)
series = pd.read_csv("raw/series.csv", parse_dates=["time"])
load = series["load"].interpolate().to_numpy("float32")
windows = np.lib.stride_tricks.sliding_window_view(load, 25)
hours = series["time"].dt.hour.to_numpy()[24:]
rows = {"past": windows[:, :24], "hour": hours, "next": windows[:, 24]}
rows["week"] = np.arange(len(windows)) // 168
pipeline = rs.Pipeline.load("config.yaml")
pipeline.build(rows)
past, hour = keras.Input((24,), name="past"), keras.Input((25,), name="hour")
hidden = keras.layers.Dense(32, "relu")(keras.layers.Concatenate()([past, hour]))
model = keras.Model({"past": past, "hour": hour}, keras.layers.Dense(1)(hidden)[:, 0])
model.compile(keras.optimizers.Adam(0.003), "mae")
model.fit(pipeline.dataset("train"), epochs=10, verbose=0)
test = pipeline.dataset("test")
values = np.concatenate([targets for _, targets in test])
chance = float(np.abs(values - np.median(values)).mean())
print(json.dumps({"loss": model.evaluate(test, verbose=0), "chance": chance}))
PYTHON
python train.py
