"""Prints which allocator PyTorch uses, after a first tensor."""

import torch

torch.zeros(1 << 20, device="cuda")
print(torch.cuda.get_allocator_backend())
