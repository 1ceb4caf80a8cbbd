// The text form of the IR: the language, unrolled. parse(print(p)) == p: reading the text and
// printing it again gives the same bytes.
//
// The grammar is the language's without param, let, require, for, if, def, import, calls and
// expressions other than the literals shown. In the order in which it is printed:
//
//   ir 1 from "ring.mscl"                     `from`: Program::files[0], which locations without a
//                                             file speak of; left out if the program has no files
//   # text                                    one line per line of the description ("#" if empty)
//   program    ring                           a STRING where the name is no free NAME
//   collective allreduce(ranks: 2, chunks: [2, 4], inplace: true)
//                                             ranks; chunks (unless 1); root, shift, counts, input,
//                                             output where the kind has them; inplace (unless
//                                             either); even: true (Contract::even_only);
//                                             order (unless any)
//   ensure     output[3] at 0 = input[1] at 1            custom only, one line per promise:
//   ensure     output[3] at 1 = reduce(input[3] at p for p in 0..2)
//   ensure     output[4] at 1 = reduce(input[3] at 0, input[2] at 1)
//                                             indexes are flat; `for p in` a range or a list where
//                                             all inputs have one chunk index; no outer `for`
//   select     sizes: 1KiB..32KiB, nodes: 2.., gpus_per_node: 8, dtypes: [f16], ops: [sum],
//              tags: [fast, "a b"], priority: -1         what is not the default, on one line
//   launch     threads: 512, instances: 2, policy: blocked, align: 128, fuse: false,
//              auto_sync: false, reuse_scratch: true, split: true, foreign: true
//                                             the same; split and foreign are Program's
//
//   rank 0 {                                  every rank, in order
//     buffer inbox[7] packets: LL16, copies: 2           flat: chunks; options unless none and 1
//     channel up[1] = memory(1) to up[0]      without `to` the end has no partner at all
//     channel sw = switch(0..4)               or a list of ranks: switch([0, 2])
//     semaphore done[3] = 1                   initial value unless 0; one a line
//
//     <sections>
//   }
//
// Names are unique per rank, and per family and keys. An index is a chunk of the flat buffer, or a
// range: `input[2]`, `up[1].inbox[3..5]`; keys are integers. One op a line:
//
//     reduce output[0] <- input[0], inbox[1] op: sum, part: [0, 2], complete  @18:25(r=0, p=1)
//     signal up[1], up[2] relaxed  @3:7 @"stages.mscl":4:5
//     barrier 0..4                            or a list: barrier [0, 2]
//     sync
//
// Options in this order: relaxed, op (left out: what the call asks), part: [i, n], tree or exact,
// complete. Then one location per element of Op::locations, in order.
//
// Sections of a program that is not split, in written order; a new one wherever the place changes:
//
//     put up[1].inbox[0] <- input[0]          an op without place stands in the rank body itself
//     tb 3 { … }                              one place: a block …
//     group 1..5 { … }                        … or a group; group [0, 2] { … }
//     pipeline unit: 512KiB, chunks: 2 { … }  encloses the sections of one loop; chunks unless 1.
//                                             Each such block is a loop of its own, unless it has
//                                             `loop: k`: blocks of a rank with the same k are one
//                                             loop (printed where other ops stand between them)
//     tb 7 {}                                 at the end, if Rank::blocks is 8 and no op names tb 7
//
// Sections of a split program (`launch split: true`): one `tb` for each block of the rank, in
// order, `tb 2 {}` for one without ops; `pipeline unit: … { … }` stands inside the `tb`.
//
// Bytes are printed with the largest unit that divides them (KiB, MiB, GiB). In strings, `\"`,
// `\\` and `\n` stand for a quote, a backslash and a newline.
#pragma once

#include <string>

#include "ir/program/program.h"

namespace mscclc {

std::string print_ir(const Program& program);
/// One op in language syntax, without locations: "put ch[1].inbox[0] <- input[2]". Its chunks have
/// the indices of the author's rows (row_names.h).
std::string print_op(const Program& program, uint32_t rank, const Op& op);
/// An operand that is chunks: "up[1].inbox[0..2]". REQUIRES: its ids are in range.
std::string print_chunks(const Program& program, uint32_t rank, const Operand& operand);
/// "allreduce_ring.mscl:27:14 (r = 0, s = 2)"; "" if the op has no location.
std::string print_location(const Program& program, const Op& op);
/// The loop variables' values at the op's first location, "r = 0, s = 2"; "" if there are none.
std::string print_bindings(const Program& program, const Op& op);

}  // namespace mscclc
