// Writes plans for MSCCL++, and the places of their ops.
#include "compiler/mscclpp/write_plan.h"

#include <span>
#include <utility>

#include "plans/format/json/json_writer.h"

namespace mscclc::mscclpp {
namespace {

std::string_view name_of(const Op& op) {
  return op.relaxed ? info(op.kind).relaxed : info(op.kind).wire;
}

/// What a plan calls a buffer.
char letter_of(int32_t buffer) { return "ios"[buffer - kInput]; }

/// About how many bytes a plan in one line has.
size_t estimate(const Program& program) {
  size_t ops = program.destinations.size();
  for (const Block& block : program.blocks) ops += block.ops.size() + 2;
  return (60 * ops + 200 * program.ranks.size()) * program.instances;
}

/// The blocks of a rank by their numbers; nullptr: one that the program does not have.
std::vector<const Block*> in_order(const Program& program, const Rank& rank) {
  std::vector<const Block*> all(count_blocks(program, rank), nullptr);
  for (const uint32_t block : rank.blocks) {
    all[program.blocks[block].number] = &program.blocks[block];
  }
  return all;
}

class Writer {
 public:
  Writer(const Program& program, JsonLayout layout)
      : program_(program),
        out_([this](std::string_view block) {
          text_ += block;
          return true;
        }),
        json_(out_, layout, 1) {
    text_.reserve(estimate(program));
  }

  std::string write() {
    uint32_t number = 0;
    json_.list(program_.ranks, [&](const Rank& rank) { write_rank(number++, rank); });
    out_.flush();
    return std::move(text_);
  }

 private:
  void write_rank(uint32_t number, const Rank& rank);
  void write_channels(const Rank& rank);
  void write_switch(const ChannelEnd& end);
  void write_block(uint64_t number, const Block& block);
  void write_op(const Op& op, uint32_t rank);
  void write_move(const Op& op, uint32_t rank);
  void write_references(const std::vector<Ref>& all, Slice slice, bool by_switch,
                        std::optional<uint32_t> rank);

  std::span<const uint32_t> ids_of(const Op& op) const {
    return std::span(program_.ids).subspan(op.ids.first, op.ids.count);
  }
  /// A number that each instance has its own of.
  uint64_t own(uint64_t number) const { return number * program_.instances + instance_; }
  /// A list with what `write` gives, or writes, of each in each instance.
  template <class List, class Write>
  void write_copies(const List& list, const Write& write) {
    json_.open('[');
    for (const auto& one : list) add_copies(one, write);
    json_.close(']');
  }
  template <class One, class Write>
  void add_copies(const One& one, const Write& write) {
    for (instance_ = 0; instance_ < program_.instances; ++instance_) json_.element(one, write);
  }

  const Program& program_;
  std::string text_;
  JsonOut out_;
  JsonWriter json_;
  uint32_t instance_ = 0;
};

void Writer::write_rank(uint32_t number, const Rank& rank) {
  static const Block kEmpty;
  const uint64_t instances = program_.instances;
  uint64_t block_number = 0;
  const auto blocks = [&] {
    write_copies(in_order(program_, rank), [&](const Block* block) {
      write_block(block_number++, block == nullptr ? kEmpty : *block);
    });
  };
  const auto remotes = [&] {
    json_.list(rank.remotes, [&](const RemoteBuffer& remote) {
      const auto access = [&] {
        json_.list(remote.access, [](ChannelKind kind) { return name(kind); });
      };
      json_.object("rank", remote.rank, "type", letter_of(remote.buffer), "access_channel_types",
                   access);
    });
  };
  const auto semaphores = [&] {
    write_copies(rank.semaphores, [&](uint32_t value) { json_.object("init_value", value); });
  };
  json_.object(
      "id", number, "input_chunks", rank.input * instances, "output_chunks",
      rank.output * instances, "scratch_chunks", rank.scratch * instances, "threadblocks", blocks,
      "channels", [&] { write_channels(rank); }, "remote_buffers", remotes, "semaphores",
      semaphores);
}

/// Those over switches come last.
void Writer::write_channels(const Rank& rank) {
  json_.open('[');
  for (const ChannelKind kind : rank.channel_kinds) {
    if (kind == ChannelKind::switch_) continue;
    const auto peers = [&] {
      write_copies(rank.channels[static_cast<size_t>(kind)],
                   [](const ChannelEnd& end) { return end.peer; });
    };
    json_.element(kind, [&](ChannelKind) {
      json_.object("channel_type", name(kind), "connected_to", peers);
    });
  }
  for (const ChannelEnd& end : rank.channels[static_cast<size_t>(ChannelKind::switch_)]) {
    add_copies(end, [&](const ChannelEnd&) { write_switch(end); });
  }
  json_.close(']');
}

void Writer::write_switch(const ChannelEnd& end) {
  const std::vector<uint32_t>* const ranks = &program_.switches[end.peer];
  const auto groups = [&] {
    json_.list(std::span(ranks, 1), [&](const auto& group) {
      json_.object("size", group.size(), "ranks", [&] { json_.list(group); });
    });
  };
  json_.object("channel_type", name(ChannelKind::switch_), "buffer_type", letter_of(end.buffer),
               "rank_groups", groups);
}

void Writer::write_block(uint64_t number, const Block& block) {
  const auto table = [&](const Tables& tables, const auto& kind_name, const auto& ids_name,
                         uint32_t instances) {
    return [=, this, &tables] {
      json_.list(tables.kinds, [&](ChannelKind kind) {
        json_.object(kind_name, name(kind), ids_name, [&] {
          json_.list(tables.of[static_cast<size_t>(kind)], [&](uint32_t id) {
            return uint64_t{id} * instances + (instances > 1 ? instance_ : 0);
          });
        });
      });
    };
  };
  const auto ops = [&] { json_.list(block.ops, [&](const Op& op) { write_op(op, block.rank); }); };
  json_.object("id", number, "ops", ops, "channels",
               table(block.channels, "channel_type", "channel_ids", program_.instances),
               "remote_buffer_refs",
               table(block.remotes, "access_channel_type", "remote_buffer_ids", 1));
}

void Writer::write_op(const Op& op, uint32_t rank) {
  const OpInfo& row = info(op.kind);
  json_.open('{');
  json_.members("name", name_of(op));
  if (op.body >= 0) {
    json_.members(
        "iter_context",
        [&] { json_.object("unit_size", op.detail[0], "num_chunks", op.detail[1]); }, "ops",
        [&] {
          json_.list(program_.bodies[static_cast<size_t>(op.body)],
                     [&](const Op& inner) { write_op(inner, rank); });
        });
  } else if (row.has(kMeets)) {
    json_.members("barrier_id", own(op.detail[0]), "num_threadblocks", op.detail[1]);
  } else if (row.has(kReleases) || row.has(kAcquires)) {
    json_.members("semaphore_ids",
                  [&] { json_.list(ids_of(op), [&](uint32_t id) { return own(id); }); });
  } else {
    write_move(op, rank);
  }
  json_.close('}');
}

/// What moves data, and what synchronizes through channels; of a nop there is nothing to write.
void Writer::write_move(const Op& op, uint32_t rank) {
  if (op.sources.count > 0) {
    const bool by_switch = op.channels == ChannelKind::switch_;
    const bool stores = by_switch && info(op.kind).srcs.slot[0].kind == SlotKind::local;
    const auto from = [&] {
      write_references(program_.sources, op.sources, by_switch,
                       stores ? std::optional(rank) : std::nullopt);
    };
    const auto to = [&] {
      write_references(program_.destinations, op.destinations, by_switch, std::nullopt);
    };
    json_.members("src_buff", from, "dst_buff", to);
  }
  if (has_channels(op)) json_.members("channel_type", name(op.channels));
  if (names_channels(op)) {
    json_.members("channel_ids", [&] { json_.list(ids_of(op)); });
  }
  if (op.reduce != ReduceOp::call) json_.members("reduce_op", name(op.reduce));
  if (op.group_size > 0) {
    json_.members("tbg_info",
                  [&] { json_.object("tb_id", op.group_at, "tbg_size", op.group_size); });
  }
}

void Writer::write_references(const std::vector<Ref>& all, Slice slice, bool by_switch,
                              std::optional<uint32_t> rank) {
  json_.list(std::span(all).subspan(slice.first, slice.count), [&](const Ref& ref) {
    json_.open('{');
    if (is_local(ref)) {
      json_.members("type", letter_of(ref.where));
    } else if (by_switch) {
      json_.members("switch_channel_id", static_cast<uint64_t>(ref.where));
    } else {
      json_.members("buffer_id", static_cast<uint64_t>(ref.where));
    }
    json_.members("index",
                  uint64_t{ref.first} * program_.instances + uint64_t{instance_} * ref.count,
                  "size", ref.count);
    if (rank) json_.members("rank", *rank);
    json_.close('}');
  });
}

}  // namespace

std::string write_gpus(const Program& program, JsonLayout layout) {
  return Writer(program, layout).write();
}

std::vector<uint64_t> write_places(const Program& program) {
  std::vector<uint64_t> out;
  for (const Rank& rank : program.ranks) {
    const auto blocks = in_order(program, rank);
    out.push_back(blocks.size());
    for (const Block* block : blocks) {
      out.push_back(block == nullptr ? 0 : block->ops.size());
      if (block == nullptr) continue;
      for (const Op& op : block->ops) {
        out.push_back(op.place);
        if (op.body < 0) {
          out.push_back(0);
          continue;
        }
        const Ops& inner = program.bodies[static_cast<size_t>(op.body)];
        out.push_back(1 + inner.size());
        for (const Op& one : inner) out.push_back(one.place);
      }
    }
  }
  return out;
}

}  // namespace mscclc::mscclpp
