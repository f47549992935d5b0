"""A trace through PyTorch's caching allocator, on the current stream. PYTORCH_ALLOC_CONF says which."""

import torch
from playing import play
from torch.cuda.memory import caching_allocator_alloc, caching_allocator_delete

torch.cuda.init()
play(lambda size: caching_allocator_alloc(size, 0, 0), caching_allocator_delete,
     in_use_peak=torch.cuda.max_memory_allocated)
