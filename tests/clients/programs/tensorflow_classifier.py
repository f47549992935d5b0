"""Trains a small text classifier in TensorFlow: Keras layers, a tf.function with a GradientTape, Adam.

TensorFlow takes nearly all of a device at its first tensor, grows when told to, or allocates from the
driver's pool; the program is the same for all of them. Batches of several shapes each trace a graph.

Its output must be the same whoever serves the memory, and on a simulated GPU, whose kernels compute
nothing: shapes, counts and values that were only copied to the device and back.
"""

import argparse

import numpy as np
import tensorflow as tf

VOCABULARY = 2000
CLASSES = 16
BATCHES = [(32, 48), (16, 96), (48, 24)]  # (texts, words)


def build(width):
    return tf.keras.Sequential(
        [
            tf.keras.layers.Embedding(VOCABULARY, width),
            tf.keras.layers.Dense(2 * width, activation="relu"),
            tf.keras.layers.LayerNormalization(),
            tf.keras.layers.GlobalAveragePooling1D(),
            tf.keras.layers.Dense(CLASSES),
        ]
    )


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=9, help="training steps (default 9)")
    parser.add_argument("--width", type=int, default=128, help="width (default 128)")
    return parser.parse_args()


def main():
    chosen = arguments()
    rng = np.random.default_rng(5)
    print(f"devices: {[device.device_type for device in tf.config.list_physical_devices('GPU')]}")
    model = build(chosen.width)
    optimiser = tf.keras.optimizers.Adam(1e-3)

    @tf.function
    def step(words, labels):
        with tf.GradientTape() as tape:
            logits = model(words)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels, logits))
        slopes = tape.gradient(loss, model.trainable_variables)
        optimiser.apply_gradients(zip(slopes, model.trainable_variables))
        return logits, loss

    read = 0
    batches_kept = []  # on the device, with what they were made of: memory given out twice would show
    for number in range(chosen.steps):
        texts, words = BATCHES[number % len(BATCHES)]
        batch = rng.integers(0, VOCABULARY, (texts, words), dtype=np.int64)
        values = rng.normal(size=(texts, words)).astype(np.float32)
        with tf.device("/GPU:0"):
            copied = tf.constant(values)
            logits, loss = step(tf.constant(batch), tf.constant(rng.integers(0, CLASSES, texts)))
        read += texts * words
        batches_kept.append((copied, values))
        same = np.array_equal(copied.numpy(), values)
        print(f"step {number}: logits {logits.shape}, loss {loss.shape}, batch copied: {same}", flush=True)
    whole = sum(np.array_equal(copied.numpy(), values) for copied, values in batches_kept)
    print(f"batches whole after training: {whole} of {chosen.steps}")
    count = sum(int(np.prod(variable.shape)) for variable in model.trainable_variables)
    print(f"read {read:,} words into {count:,} parameters, on {copied.device.split('/')[-1]}")


if __name__ == "__main__":
    main()
