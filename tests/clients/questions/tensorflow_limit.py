"""Limits TensorFlow to 256 MiB in Python, asks for 32 MiB at a time, and prints how often it was given."""

import tensorflow as tf

gpu = tf.config.list_physical_devices("GPU")[0]
tf.config.set_logical_device_configuration(gpu, [tf.config.LogicalDeviceConfiguration(memory_limit=256)])
kept = []
try:
    with tf.device("/GPU:0"):
        for _ in range(64):
            kept.append(tf.zeros((8 << 20,)))
except tf.errors.ResourceExhaustedError:
    print(f"{len(kept)} tensors, then exhausted")
