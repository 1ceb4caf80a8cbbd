"""The bits of one sequence's logits in batches of 1 to 64, in a tensor-parallel decoder.

    python3 tests/gpu/nccl/batch_logits.py --library /opt/mscclc/lib/mscclc/libnccl.so.2 [--ranks N]
        [--model 8b] [--blocks 8] [--batches 1,2,8,64] [--tokens 4]

The decoder of decode_loop.py and a vocabulary, whose GEMMs always have the rows of the largest batch and
whose attention takes one sequence at a time, so that only the all-reduces depend on the batch. Runs with
the library in front of NCCL under MSCCLC_ORDER=ranks, where each call must get a plan, and with NCCL
alone. Prints for both in which batches the first sequence has other logits than alone, of --tokens
tokens, to the bit. Exits with 1 if the library's differ, or those of two ranks.
"""
import argparse
import hashlib
import sys

import decode_loop
import nccl_ranks
import torch
import torch.distributed as dist

CONTEXT = 256
VOCABULARY = 128256  # Llama 3


class TiledDecoder(decode_loop.Decoder):
    """Its GEMMs have `tile` rows, and its attention one sequence."""

    def __init__(self, name, blocks, ranks, rank, tile):
        super().__init__(torch, name, ranks, rank)
        self.blocks, self.tile = self.blocks[:blocks], tile
        torch.manual_seed(99)  # all ranks have the whole head
        self.head = self.new((VOCABULARY, self.hidden)).normal_(0, self.hidden ** -0.5)

    def linear(self, x, weights):
        whole = x.new_zeros(self.tile, x.shape[1])
        whole[:x.shape[0]] = x
        return super().linear(whole, weights)[:x.shape[0]]

    def attention(self, x, weights, cache):
        rows = [self.one_sequence(x[i:i + 1], weights, cache[:, i:i + 1]) for i in range(x.shape[0])]
        return self.linear(torch.cat(rows), weights[1])

    def one_sequence(self, x, weights, cache):
        groups = self.heads // self.kv_heads
        q, k, v = self.linear(x, weights[0]).split(
            [n * decode_loop.HEAD for n in (self.heads, self.kv_heads, self.kv_heads)], dim=1)
        cache[0, :, :, -1] = k.reshape(1, self.kv_heads, decode_loop.HEAD)
        cache[1, :, :, -1] = v.reshape(1, self.kv_heads, decode_loop.HEAD)
        q = q.reshape(1, self.kv_heads, groups, decode_loop.HEAD)
        out = torch.nn.functional.scaled_dot_product_attention(q, cache[0], cache[1])
        return out.reshape(1, self.heads * decode_loop.HEAD)


    def logits(self, x):
        return self.linear(x, self.head)


def first_sequence(decoder, batch, most, tokens):
    """The bits of the first sequence's logits of some tokens."""
    torch.manual_seed(11)
    x = torch.randn(most, decoder.hidden, device="cuda").to(torch.bfloat16)[:batch]
    caches = [cache[:, :batch].clone() for cache in decoder.new_cache(most, CONTEXT)]
    bits = hashlib.sha256()
    for _ in range(tokens):
        x = decoder.token(x, caches, dist.all_reduce)
        bits.update(decoder.logits(x)[0].view(torch.int16).cpu().numpy().tobytes())
    return bits.hexdigest()


def worker(options):
    torch.cuda.set_device(options.worker)
    dist.init_process_group("nccl", rank=options.worker, world_size=options.ranks)
    most = max(options.batches)
    with torch.no_grad():
        decoder = TiledDecoder(options.model, options.blocks, options.ranks, options.worker, most)
        for batch in options.batches:
            print(batch, first_sequence(decoder, batch, most, options.tokens), flush=True)
    dist.destroy_process_group()


def run(options, library):
    """By batch: what the ranks found."""
    found = {}
    settings = {"MSCCLC_ORDER": "ranks", "MSCCLC_REQUIRE_PLAN": "1"} if library else {}
    for line in nccl_ranks.run(__file__, options.ranks, library, "--model", options.model,
                               "--blocks", str(options.blocks), "--tokens", str(options.tokens),
                               "--batches", ",".join(map(str, options.batches)), **settings):
        batch, bits = line.split()
        found.setdefault(int(batch), set()).add(bits)
    return found


def main():
    parser = nccl_ranks.add_ranks(argparse.ArgumentParser(), torch.cuda.device_count())
    parser.add_argument("--library")
    parser.add_argument("--model", choices=decode_loop.MODELS, default="8b")
    parser.add_argument("--blocks", type=int, default=8)
    parser.add_argument("--batches", type=decode_loop.numbers, default=[1, 2, 8, 64])
    parser.add_argument("--tokens", type=int, default=4)
    options = nccl_ranks.options_of(parser, worker)
    good = True
    for name, library in (("mscclc, in the order of the ranks", options.library), ("NCCL", None)):
        found = run(options, library)
        apart = [batch for batch, bits in found.items() if len(bits) != 1]
        other = [batch for batch, bits in found.items() if bits != found[options.batches[0]]]
        print(f"{name}: {options.ranks} ranks, {options.model}, {options.blocks} blocks, "
              f"{options.tokens} tokens, batches {options.batches}: "
              f"other logits than alone in {other or 'none'}, ranks differ in {apart or 'none'}")
        good = good and (library is None or not (apart or other))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
