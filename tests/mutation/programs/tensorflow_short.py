"""TensorFlow's growing pool gives regions back when a tensor fits in none of them, with kernels that use
them queued. Nothing is copied to the device on the way, which would wait for them."""
import tensorflow as tf

gpu = tf.config.list_physical_devices('GPU')[0]
tf.config.experimental.set_memory_growth(gpu, True)
with tf.device('/GPU:0'):
    base = tf.zeros((40, 1 << 20), tf.float32)
    for parts in (2, 3, 4, 5):
        small = base + base
        small = small + small
        del small
        large = tf.concat([base] * parts, 0)
        del large
print('done')
