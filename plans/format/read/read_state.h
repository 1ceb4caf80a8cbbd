// What the steps of reading a plan hand to one another. Not for use outside the reader.
//
//   read_ranks    chunks, channels, remote buffers, semaphores of all ranks
//   read_blocks   thread blocks and their ops; scratch refs still count the chunks of the wire
//   read_scratch  scratch buffers, and which of them each scratch ref means
//   read_notes    what the extra key says about the ops of each rank
//   read_header   the extra key's contract, select, launch and sites, or what a plan of MSCCL++
//   implies
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/program/program.h"
#include "plans/format/json/json_read.h"
#include "plans/format/proof_record.h"
#include "plans/format/wire/wire_layout.h"

namespace mscclc {

/// A rank as the wire has it, for looking up what ops refer to.
struct WireRank {
  struct Switch {
    uint32_t channel;  ///< of the rank
    WireType type;
    uint32_t chunks;  ///< that refs may count up to
    Slice group;      ///< its ranks, in Program::integers
  };
  struct Listed {
    ChannelKind kind;
    uint32_t id;
  };
  struct Remote {
    uint32_t rank;
    WireType type;
    uint8_t access;  ///< ChannelKinds bits
  };

  NodeId node = kNoNode;
  NodeId blocks = kNoNode;
  uint32_t chunks[3] = {};  ///< by WireType
  NodeId chunk_nodes[3] = {};
  std::vector<uint32_t> channels[2];  ///< IR channel by wire id: memory, port
  std::vector<uint32_t> peers[2];     ///< the same: its peer
  std::vector<Switch> switches;       ///< by wire id
  std::vector<Listed> listed;         ///< all of them in the order of the file
  std::vector<Remote> remotes;        ///< by remote buffer id
};

/// Where scratch is used, in wire chunks: which distinguishes packets from plain data in a peer's
/// plan.
struct ScratchUse {
  uint32_t rank, first, count;
  bool packets;
  bool plain_remote;
  NodeId node;
};

struct ReadState {
  ReadState(const JsonReader& json, Program& program, uint64_t bytes)
      : json(json), program(program), bytes(bytes) {}

  const JsonReader& json;
  Program& program;
  uint64_t bytes;        ///< of the document
  bool ours = false;     ///< it has our key
  bool packets = false;  ///< protocol LL
  bool double_scratch = false;
  std::vector<WireRank> ranks;
  std::vector<Members> extra;  ///< ours: members of mscclc.ranks[r]
  std::vector<ScratchUse> uses;
  std::vector<std::vector<NodeId>> op_nodes;     ///< per rank and op
  std::vector<std::vector<uint8_t>> op_is_long;  ///< per rank and op: it has its long name

  /// The member of mscclc.ranks[rank], or kNoNode.
  NodeId extra_node(uint32_t rank, KnownWord key) const {
    return ours ? extra[rank][key] : kNoNode;
  }
  bool fail(NodeId node, std::string message) const { return json.fail(node, std::move(message)); }
};

/// An operand that stands for scratch of the wire until read_scratch has placed it.
inline constexpr uint32_t kWireScratch = kFirstScratch;

bool read_type(const JsonReader& json, NodeId node, WireType& out);
bool read_kind(const JsonReader& json, NodeId node, ChannelKind& out);
bool read_ranks(ReadState& state, NodeId gpus);
/// Of read_ranks: declare what the wire lists, `list`, by the names of the extra key.
bool declare_channels(ReadState& state, uint32_t rank, NodeId list);
bool name_semaphores(ReadState& state, uint32_t rank, NodeId list);
/// Of read_ranks, once all ranks are declared: partners, and what switches reach.
bool connect_channels(ReadState& state);
bool read_blocks(ReadState& state);
bool read_scratch(ReadState& state);
bool read_notes(ReadState& state);
/// Row functions and externals; kNoNode: there are none.
bool read_rows(ReadState& state, NodeId functions, NodeId externals, NodeId flags);
/// Reads everything in the extra key but `ranks`, of which only the members are noted.
bool read_extra(ReadState& state, NodeId extra);
/// Reads the record of a proof of a plan for `plan_target`.
bool read_proof(const JsonReader& json, NodeId node, std::string_view plan_target,
                ProofRecord& record);
/// Makes the contract that a plan of MSCCL++ implies. Needs the ops.
bool infer_contract(ReadState& state, NodeId collective, std::string_view name, bool in_place);

}  // namespace mscclc
