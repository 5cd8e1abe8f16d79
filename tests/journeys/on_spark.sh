# A CSV file that Spark cleans, to a model: the executors write the shards, and check them.
python "$RAW" rides
# --
cat > rides.yaml <<'YAML'
schema: rides
features:
  ride: string
  weekday: int64
  fare: {dtype: float32, default: -1}
  company: {dtype: string, default: none}
  payment: string
  tipped: {kind: label, names: ["no", "yes"]}
YAML
cat > config.yaml <<'YAML'
schema: rides.yaml
data: data
read: {batch: 64, shuffle: {seed: 1}}
fit:
  inputs: [weekday, company, fare, payment]
  targets: tipped
  encode: {weekday: one_hot, company: one_hot, fare: normalize, payment: one_hot}
YAML
cat > build.py <<'PYTHON'
from pyspark.sql import SparkSession
from pyspark.sql import functions as sql
from recordspec import spark

session = SparkSession.builder.master("local[2]").getOrCreate()
rides = session.read.csv("raw/rides.csv", header=True, inferSchema=True)
rides = rides.withColumn("weekday", sql.weekday("pickup").cast("long"))
rides = rides.withColumn("fare", sql.col("fare").cast("float")).drop("pickup")
options = {"split": {"train": 80, "test": 20}, "key": "ride", "shuffle": 1}
spark.write(rides, "rides.yaml", "data", shards=2, **options)
with spark.running_on(session):
    import recordspec as rs

    assert rs.check("data").valid
PYTHON
python build.py
cat > train.py <<'PYTHON'
import json
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
train, test = pipeline.dataset("train"), pipeline.dataset("test")
inputs = {
    name: keras.Input(spec.shape[1:], name=name)
    for name, spec in train.element_spec[0].items()
}
columns = [
    keras.ops.reshape(value, (-1, value.shape[1] if len(value.shape) > 1 else 1))
    for value in inputs.values()
]
hidden = keras.layers.Dense(16, "relu")(keras.layers.Concatenate()(columns))
model = keras.Model(inputs, keras.layers.Dense(2)(hidden))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(train, epochs=8, verbose=0)
counts = pipeline.manifest.class_counts(("test",))["tipped"]
accuracy = model.evaluate(test, verbose=0)[1]
print(json.dumps({"accuracy": accuracy, "chance": max(counts) / sum(counts)}))
PYTHON
python train.py
