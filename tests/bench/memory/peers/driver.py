"""A trace through cuMemAllocAsync and cuMemFreeAsync on one stream: with the shim preloaded, tidepool."""

import cuda
from playing import play

cuda.start()
stream = cuda.Stream()
play(stream.allocate, stream.free)
