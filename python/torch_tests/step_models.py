"""The models of step_times.py: a stack of layers for tensor-parallel decode, and a transformer to train.

Devices are named at each tensor: a default device of torch would add to the time of each call of it.
"""

import torch
import torch.distributed as dist
import torch.nn.functional as F


def _matrix(rows, columns, generator):
    """Weights that keep the size of what they are multiplied with."""
    return torch.randn(rows, columns, generator=generator, device=generator.device) / columns**0.5


class DecodeLayer:
    """A rank's part of a layer as in Llama, without rotary embeddings: heads and the columns of the hidden layer are
    shared out, and what ranks have computed is added up twice. `cache`: keys and values of the tokens so far."""

    def __init__(self, hidden, heads, batch, context, ranks, generator):
        if hidden % heads or heads % ranks:
            raise ValueError(f"hidden {hidden} must be a multiple of heads {heads}, and that of ranks {ranks}")
        self._heads, width = heads // ranks, hidden // heads
        inner = 256 * -(-8 * hidden // (3 * 256)) // ranks
        own = hidden // ranks
        self._qkv = _matrix(3 * own, hidden, generator)
        self._out = _matrix(hidden, own, generator)
        self._gate_up = _matrix(2 * inner, hidden, generator)
        self._down = _matrix(hidden, inner, generator)
        shape = (2, batch, self._heads, context, width)
        self._cache = torch.randn(shape, generator=generator, device=generator.device)

    def __call__(self, x, group):
        x = x + self._attention(F.rms_norm(x, x.shape[-1:]), group)
        return x + self._dense(F.rms_norm(x, x.shape[-1:]), group)

    def _attention(self, x, group):
        batch = len(x)
        query, *new = F.linear(x, self._qkv).view(batch, 3, self._heads, 1, -1).unbind(1)
        keys, values = cache = self._cache[:, :batch]
        cache[..., -1:, :] = torch.stack(new)
        found = F.scaled_dot_product_attention(query, keys, values)
        return _sum(F.linear(found.reshape(batch, -1), self._out), group)

    def _dense(self, x, group):
        gate, up = F.linear(x, self._gate_up).chunk(2, -1)
        return _sum(F.linear(F.silu(gate) * up, self._down), group)


def _sum(part, group):
    dist.all_reduce(part, group=group)
    return part


class DecodeStack:
    """Layers that give the next token's hidden state for each sequence, with the collectives of any group."""

    def __init__(self, given, rank, device):
        generator = torch.Generator(device).manual_seed(1 + rank)
        self._layers = [
            DecodeLayer(given.hidden, given.heads, max(given.batches), given.context, given.ranks, generator)
            for _ in range(given.layers)
        ]

    def __call__(self, x, group):
        for layer in self._layers:
            x = layer(x, group)
        return x


class Trained(torch.nn.Module):
    """A transformer whose loss is how badly it guesses tokens, of which it knows nothing."""

    def __init__(self, given):
        super().__init__()
        torch.manual_seed(0)
        hidden = given.train_hidden
        self.embedding = torch.nn.Embedding(given.vocabulary, hidden)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(
                hidden, given.train_heads, 4 * hidden, dropout=0, batch_first=True, norm_first=True
            )
            for _ in range(given.train_layers)
        )
        self.head = torch.nn.Linear(hidden, given.vocabulary)

    def forward(self, tokens, wanted):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return F.cross_entropy(self.head(x).flatten(0, 1).float(), wanted.flatten())


class Training:
    """Steps of the model, sharded by FSDP2 over a group. step(i): its loss on this rank, and its gradients' norm."""

    def __init__(self, given, rank, device, group):
        from torch.distributed.device_mesh import DeviceMesh
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        how = {
            "mesh": DeviceMesh.from_group(group, device.type),
            "mp_policy": MixedPrecisionPolicy(param_dtype=given.dtype, reduce_dtype=torch.float32),
        }
        self._given, self._rank, self._device = given, rank, device
        with device:
            self._model = Trained(given)
        for layer in self._model.layers:
            fully_shard(layer, **how)
        fully_shard(self._model, **how)
        # Not fused, it takes numbers that differ in each step. What DTensor does for these costs a step more than
        # a small model, and only the first of the backends pays it, as it is kept.
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4, fused=True)

    def step(self, number):
        generator = torch.Generator(self._device).manual_seed(1000 * number + self._rank)
        shape = (2, self._given.train_batch, self._given.sequence)
        tokens, wanted = torch.randint(
            self._given.vocabulary, shape, generator=generator, device=self._device
        )
        self._optimizer.zero_grad()
        loss = self._model(tokens, wanted)
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(self._model.parameters(), 1.0)
        self._optimizer.step()
        return loss.detach(), norm.full_tensor()
