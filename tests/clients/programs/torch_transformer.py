"""Trains a small transformer in PyTorch: an nn.Module, AdamW, batches of several shapes.

PyTorch's own caching allocator stands between this program and the driver, so what is asked of the
driver are its segments: a few large ones in its native form, one per tensor with backend:cudaMallocAsync,
mapped pages with expandable_segments. The program is the same for all of them.

Its output must be the same whoever serves the memory, and on a simulated GPU, whose kernels compute
nothing: shapes, counts and values that were only copied to the device and back.
"""

import argparse
import zlib

import torch
from torch import nn

VOCABULARY = 512
BATCHES = [(8, 64), (4, 96), (12, 32), (6, 80)]  # (sequences, tokens)


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.before_attention, self.before_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention_in, self.attention_out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        sequences, length, width = x.shape
        shape = (sequences, length, 3, self.heads, width // self.heads)
        query, key, value = self.attention_in(self.before_attention(x)).view(shape).permute(2, 0, 3, 1, 4)
        scores = query @ key.transpose(-2, -1) / (width // self.heads) ** 0.5
        mixed = (scores.softmax(-1) @ value).transpose(1, 2).reshape(sequences, length, width)
        x = x + self.attention_out(mixed)
        return x + self.mlp(self.before_mlp(x))


class Model(nn.Module):
    def __init__(self, width, layers):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.out = nn.Linear(width, VOCABULARY)

    def forward(self, tokens):
        x = self.tokens(tokens)
        for block in self.blocks:
            x = block(x)
        return self.out(x)


def checksum(tensors):
    """One number for all values, computed on the host."""
    crc = 0
    for tensor in tensors:
        crc = zlib.crc32(tensor.detach().cpu().numpy().tobytes(), crc)
    return crc


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=12, help="training steps (default 12)")
    parser.add_argument("--width", type=int, default=256, help="width, a multiple of 4 (default 256)")
    parser.add_argument("--layers", type=int, default=3, help="transformer blocks (default 3)")
    return parser.parse_args()


def main():
    chosen = arguments()
    torch.manual_seed(4)
    device = torch.device("cuda", 0)
    model = Model(chosen.width, chosen.layers)
    before = checksum(model.parameters())
    model.to(device)
    print(f"transformer: {sum(p.numel() for p in model.parameters()):,} parameters on {device}")
    print(f"copied to the device and back: equal: {checksum(model.parameters()) == before}")

    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3)
    trained = 0
    batches_kept = []  # on the device, with what they were made of: memory given out twice would show
    for number in range(chosen.steps):
        sequences, length = BATCHES[number % len(BATCHES)]
        tokens = torch.randint(0, VOCABULARY, (sequences, length + 1))
        on_device = tokens.to(device)
        # Before a kernel has read it: what a kernel would write is another matter.
        same = torch.equal(on_device.cpu(), tokens)
        batches_kept.append((on_device, tokens))
        logits = model(on_device[:, :-1].contiguous())
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), on_device[:, 1:].flatten())
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        optimiser.step()
        torch.cuda.synchronize()
        trained += sequences * length
        gradients = sum(p.grad is not None and p.grad.shape == p.shape for p in model.parameters())
        print(f"step {number}: logits {list(logits.shape)}, {gradients} gradients, batch copied: {same}", flush=True)
    whole = sum(torch.equal(on_device.cpu(), tokens) for on_device, tokens in batches_kept)
    print(f"batches whole after training: {whole} of {chosen.steps}")
    print(f"trained on {trained:,} tokens; optimiser holds {len(optimiser.state)} states")


if __name__ == "__main__":
    main()
