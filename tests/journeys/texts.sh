# Texts in JSON lines, to a served classifier that a client asks by names alone.
python "$RAW" opinions
# --
recordspec infer raw/opinions.jsonl --out opinions.yaml --config config.yaml
recordspec build config.yaml
cat > train.py <<'PYTHON'
import keras
import recordspec as rs

keras.utils.set_random_seed(1)
pipeline = rs.Pipeline.load("config.yaml")
words = pipeline.layers()["text"].vocabulary_size()
model = keras.Sequential([
    keras.Input((None,), dtype="int64"),
    keras.layers.Embedding(words, 16, mask_zero=True),
    keras.layers.GlobalAveragePooling1D(),
    keras.layers.Dense(2, "softmax"),
])
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
model.fit(pipeline.dataset("train"), epochs=3, verbose=0)
pipeline.export_model(model, "models/opinions/1")
PYTHON
python train.py
recordspec export opinions-data/test-* --out test.jsonl
cat > ask.py <<'PYTHON'
import json
import tensorflow as tf

rows = [json.loads(line) for line in open("test.jsonl")]
model = tf.saved_model.load("models/opinions/1")
texts = tf.constant([row["text"] for row in rows])
answers = model.predict(text=texts)["class"].numpy()
said = [row["opinion"] for row in rows]
right = sum(answer.decode() == word for answer, word in zip(answers, said))
chance = max(said.count(word) for word in set(said)) / len(said)
print(json.dumps({"accuracy": right / len(rows), "chance": chance}))
PYTHON
python ask.py
