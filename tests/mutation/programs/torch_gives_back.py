"""PyTorch hands its cache back while kernels that use it are queued: it relies on the free to wait."""
import torch

for step in range(6):
    tensor = torch.empty((8 + step) << 20, dtype=torch.float32, device='cuda')
    for _ in range(4):
        tensor.mul_(2.0)
    del tensor
    torch.cuda.empty_cache()
    torch.empty((8 + step) << 20, dtype=torch.float32, device='cuda').mul_(2.0)
torch.cuda.synchronize()
print('done')
