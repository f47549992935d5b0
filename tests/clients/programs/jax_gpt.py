"""Trains a small GPT in plain JAX: the client program of the demo and of the client tests.

It knows nothing of tidepool and asks the driver for memory the way training programs do: parameters
and Adam's state that live throughout, activations that come and go, batches of several shapes, a step
that donates its inputs and one that does not. About 1 GB is asked for at the peak.

Its output must be the same whoever serves the memory, and on a simulated GPU, whose kernels compute
nothing. So it prints shapes, counts and values that were only copied to the device and back, and no
loss, time or amount of memory. On a real GPU `--losses` shows that the training is real.
"""

import argparse
import functools
import zlib

import jax
import jax.numpy as jnp
import numpy as np

VOCABULARY = 8192
CONTEXT = 256
HEAD_WIDTH = 64

# (sequences, tokens): changing shapes are what makes a pool fragment. Each costs a compilation, which
# on a simulated GPU is most of the time, so each way of stepping has its own few.
DONATED_BATCHES = [(16, 256), (8, 192)]
KEPT_BATCHES = [(12, 128)]


def initial_parameters(layers, width, rng):
    """Random weights made on the host, so that what reaches the device can be checked."""

    def weights(rows, columns):
        return rng.normal(0.0, 0.02, (rows, columns)).astype(np.float32)

    blocks = [
        {
            "attention_in": weights(width, 3 * width),
            "attention_out": weights(width, width),
            "mlp_in": weights(width, 4 * width),
            "mlp_out": weights(4 * width, width),
            "scale": np.ones((2, width), np.float32),
        }
        for _ in range(layers)
    ]
    return {
        "tokens": weights(VOCABULARY, width),
        "positions": weights(CONTEXT, width),
        "blocks": blocks,
        "scale": np.ones((width,), np.float32),
    }


def counting_batch(sequences, length, rng):
    """Sequences of length + 1 that count upwards in equal strides: easy to learn, no file needed."""
    start = rng.integers(0, VOCABULARY, (sequences, 1), dtype=np.int32)
    stride = rng.integers(1, 4, (sequences, 1), dtype=np.int32)
    return (start + stride * np.arange(length + 1, dtype=np.int32)) % VOCABULARY


def normalise(x, scale):
    return x * jax.lax.rsqrt(jnp.mean(x * x, axis=-1, keepdims=True) + 1e-6) * scale


def attention(block, x):
    sequences, length, width = x.shape
    shape = (sequences, length, 3, width // HEAD_WIDTH, HEAD_WIDTH)
    query, key, value = jnp.moveaxis((x @ block["attention_in"]).reshape(shape), 2, 0)
    scores = jnp.einsum("bqhd,bkhd->bhqk", query, key) / np.sqrt(HEAD_WIDTH)
    visible = jnp.tril(jnp.ones((length, length), bool))
    chances = jax.nn.softmax(jnp.where(visible, scores, -1e9), axis=-1)
    mixed = jnp.einsum("bhqk,bkhd->bqhd", chances, value)
    return mixed.reshape(sequences, length, width) @ block["attention_out"]


def mean_loss(parameters, tokens):
    """Cross entropy of each next token."""
    seen, following = tokens[:, :-1], tokens[:, 1:]
    x = parameters["tokens"][seen] + parameters["positions"][: seen.shape[1]]
    for block in parameters["blocks"]:
        x = x + attention(block, normalise(x, block["scale"][0]))
        hidden = jax.nn.gelu(normalise(x, block["scale"][1]) @ block["mlp_in"])
        x = x + hidden @ block["mlp_out"]
    logits = normalise(x, parameters["scale"]) @ parameters["tokens"].T
    chosen = jnp.take_along_axis(jax.nn.log_softmax(logits), following[..., None], axis=-1)
    return -jnp.mean(chosen)


def adam_step(state, tokens):
    """One training step: (parameters, mean, square) and a batch -> the next three and the loss."""
    loss, slopes = jax.value_and_grad(mean_loss)(state[0], tokens)

    def update(parameter, mean, square, slope):
        mean = 0.9 * mean + 0.1 * slope
        square = 0.99 * square + 0.01 * slope * slope
        return parameter - 1e-3 * mean / (jnp.sqrt(square) + 1e-8), mean, square

    updated = jax.tree.map(update, *state, slopes)
    parts = [
        jax.tree.map(lambda triple, i=i: triple[i], updated, is_leaf=lambda x: isinstance(x, tuple))
        for i in range(3)
    ]
    return tuple(parts), loss


def checksum(tree):
    """One number for all values of a tree, computed on the host."""
    values = (np.ascontiguousarray(leaf).tobytes() for leaf in jax.tree.leaves(jax.device_get(tree)))
    return functools.reduce(lambda crc, data: zlib.crc32(data, crc), values, 0)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12, help="training steps (default 12)")
    parser.add_argument("--width", type=int, default=512, help="width, a multiple of 64 (default 512)")
    parser.add_argument("--layers", type=int, default=2, help="transformer blocks (default 2)")
    parser.add_argument("--losses", action="store_true", help="print losses; means nothing on a simulator")
    chosen = parser.parse_args()
    if chosen.width < HEAD_WIDTH or chosen.width % HEAD_WIDTH:
        parser.error(f"--width must be a multiple of {HEAD_WIDTH}, not {chosen.width}")
    return chosen


def main():
    chosen = arguments()
    device = jax.devices("cuda")[0]
    rng = np.random.default_rng(1)

    on_host = initial_parameters(chosen.layers, chosen.width, rng)
    leaves = jax.tree.leaves(on_host)
    print(f"GPT: {chosen.layers} layers, width {chosen.width}, on {device.platform} device {device.id}")
    print(f"parameters: {sum(leaf.size for leaf in leaves):,} in {len(leaves)} arrays")

    parameters = jax.device_put(on_host, device)
    same = checksum(parameters) == checksum(on_host)
    print(f"copied to the device and back: checksum {checksum(parameters):08x}, equal: {same}")
    zeros = jax.jit(functools.partial(jax.tree.map, jnp.zeros_like))
    state = (parameters, zeros(parameters), zeros(parameters))
    del parameters  # or its buffers could not be donated

    donating = jax.jit(adam_step, donate_argnums=0)
    keeping = jax.jit(adam_step)
    total = 0
    batches_kept = []  # on the device, with what they were made of: memory given out twice would show
    for number in range(chosen.steps):
        # The last third keeps its inputs: old and new state are then alive at the same time.
        donated = number < chosen.steps - chosen.steps // 3
        batches = DONATED_BATCHES if donated else KEPT_BATCHES
        sequences, length = batches[number % len(batches)]
        batch = counting_batch(sequences, length, rng)
        tokens = jax.device_put(batch, device)
        # A copy that is read only at the end: JAX remembers what it has read of an array.
        batches_kept.append((jax.device_put(batch, device), batch))
        state, loss = (donating if donated else keeping)(state, tokens)
        jax.block_until_ready(loss)
        total += sequences * length
        end = f", loss {float(loss):.4f}" if chosen.losses else ""
        kind = "donated" if donated else "kept"
        print(f"step {number}: batch {sequences}x{length}, batch checksum {checksum(tokens):08x}, {kind}{end}",
              flush=True)

    whole = sum(np.array_equal(np.asarray(copied), batch) for copied, batch in batches_kept)
    print(f"batches whole after training: {whole} of {chosen.steps}")
    shapes = sorted({f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(state)})
    print(f"trained on {total:,} tokens; arrays of {', '.join(shapes)}")


if __name__ == "__main__":
    main()
