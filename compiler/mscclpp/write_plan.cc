// Writes plans for MSCCL++, and the places of their ops.
#include "compiler/mscclpp/write_plan.h"

#include <utility>

#include "plans/format/json/json_out.h"

namespace mscclc::mscclpp {
namespace {

/// JSON text, laid out.
class Json {
 public:
  /// `bytes`: about how many it will be.
  Json(Layout layout, uint32_t level, size_t bytes)
      : layout_(layout), level_(level), out_([this](std::string_view block) {
          text_ += block;
          return true;
        }) {
    text_.reserve(bytes);
  }

  std::string take() {
    out_.flush();
    return std::move(text_);
  }

  void open(char bracket) {
    character(bracket);
    ++level_;
    empty_ = true;
  }
  void close(char bracket) {
    --level_;
    if (!empty_) new_line();
    character(bracket);
    empty_ = false;
  }
  /// Comes before each element of a list.
  void element() {
    if (!empty_) out_.text(layout_.compact || layout_.indent >= 0 ? "," : ", ");
    new_line();
    empty_ = false;
  }
  void key(std::string_view name) {
    element();
    string(name);
    out_.text(layout_.compact ? ":" : ": ");
  }
  void string(std::string_view text) { out_.string(text); }
  void number(uint64_t value) {
    out_.need(kDigits);
    out_.number64(value);
  }
  void member(std::string_view name, uint64_t value) {
    key(name);
    number(value);
  }
  void member(std::string_view name, std::string_view value) {
    key(name);
    string(value);
  }
  template <class List, class Write>
  void list(const List& list, const Write& write) {
    open('[');
    for (const auto& one : list) {
      element();
      write(one);
    }
    close(']');
  }

 private:
  static constexpr size_t kDigits = 32;  ///< of a number, with room to spare

  void character(char c) {
    out_.need(1);
    out_.character(c);
  }
  void new_line() {
    if (layout_.indent < 0) return;
    character('\n');
    for (uint64_t left = static_cast<uint64_t>(layout_.indent) * level_; left > 0; --left) {
      character(' ');
    }
  }

  Layout layout_;
  uint32_t level_;
  bool empty_ = true;
  std::string text_;
  JsonOut out_;
};

/// Whether an op through channels names them: puts and sums by memory name remote buffers only.
bool names_channels(const Op& op) {
  if (op.channels == ChannelKind::switch_) return false;
  return op.channels == ChannelKind::port || op.kind == OpKind::get || !info(op.kind).moves_data();
}

std::string_view name_of(const Op& op) {
  return op.relaxed ? info(op.kind).relaxed : info(op.kind).wire;
}

/// What a plan calls a buffer.
std::string_view letter_of(int32_t buffer) {
  return std::string_view("ios").substr(static_cast<size_t>(buffer - kInput), 1);
}

/// About how many bytes a plan in one line has.
size_t estimate(const Program& program) {
  size_t ops = program.destinations.size();
  for (const Block& block : program.blocks) ops += block.ops.size() + 2;
  return (60 * ops + 200 * program.ranks.size()) * program.instances;
}

class Writer {
 public:
  Writer(const Program& program, Layout layout)
      : program_(program), json_(layout, 1, estimate(program)) {}

  std::string write() {
    json_.open('[');
    for (size_t rank = 0; rank < program_.ranks.size(); ++rank) {
      json_.element();
      write_rank(static_cast<uint32_t>(rank));
    }
    json_.close(']');
    return json_.take();
  }

 private:
  void write_rank(uint32_t number);
  void write_blocks(const Rank& rank);
  void write_channels(const Rank& rank);
  void write_switch(const ChannelEnd& end);
  void write_remotes(const Rank& rank);
  void write_semaphores(const Rank& rank);
  void write_block(uint64_t number, const Block* block);
  void write_tables(const Tables& tables, std::string_view kind, std::string_view ids,
                    bool of_each_instance);
  void write_op(const Op& op, uint32_t rank);
  void write_move(const Op& op, uint32_t rank);
  void write_references(const std::vector<Ref>& all, Slice slice, bool by_switch,
                        std::optional<uint32_t> rank);
  template <class Number>
  void write_ids(std::string_view name, Slice ids, const Number& number);
  /// A number that each instance has its own of.
  uint64_t own(uint64_t number) const { return number * program_.instances + instance_; }

  const Program& program_;
  Json json_;
  uint32_t instance_ = 0;
};

void Writer::write_rank(uint32_t number) {
  const Rank& rank = program_.ranks[number];
  json_.open('{');
  json_.member("id", number);
  json_.member("input_chunks", rank.input * program_.instances);
  json_.member("output_chunks", rank.output * program_.instances);
  json_.member("scratch_chunks", rank.scratch * program_.instances);
  json_.key("threadblocks");
  write_blocks(rank);
  json_.key("channels");
  write_channels(rank);
  json_.key("remote_buffers");
  write_remotes(rank);
  json_.key("semaphores");
  write_semaphores(rank);
  json_.close('}');
}

/// The blocks of a rank by their numbers; nullptr: one that the program does not have.
std::vector<const Block*> in_order(const Program& program, const Rank& rank) {
  std::vector<const Block*> all(count_blocks(program, rank), nullptr);
  for (const uint32_t block : rank.blocks) {
    all[program.blocks[block].number] = &program.blocks[block];
  }
  return all;
}

void Writer::write_blocks(const Rank& rank) {
  uint64_t number = 0;
  json_.open('[');
  for (const Block* block : in_order(program_, rank)) {
    for (instance_ = 0; instance_ < program_.instances; ++instance_) {
      json_.element();
      write_block(number++, block);
    }
  }
  json_.close(']');
}

/// Those over switches come last.
void Writer::write_channels(const Rank& rank) {
  json_.open('[');
  for (const ChannelKind kind : rank.channel_kinds) {
    if (kind == ChannelKind::switch_) continue;
    json_.element();
    json_.open('{');
    json_.member("channel_type", name(kind));
    json_.key("connected_to");
    json_.open('[');
    for (const ChannelEnd& end : rank.channels[static_cast<size_t>(kind)]) {
      for (uint32_t i = 0; i < program_.instances; ++i) {
        json_.element();
        json_.number(end.peer);
      }
    }
    json_.close(']');
    json_.close('}');
  }
  for (const ChannelEnd& end : rank.channels[static_cast<size_t>(ChannelKind::switch_)]) {
    write_switch(end);
  }
  json_.close(']');
}

void Writer::write_switch(const ChannelEnd& end) {
  const auto& ranks = program_.switches[end.peer];
  for (uint32_t i = 0; i < program_.instances; ++i) {
    json_.element();
    json_.open('{');
    json_.member("channel_type", name(ChannelKind::switch_));
    json_.member("buffer_type", letter_of(end.buffer));
    json_.key("rank_groups");
    json_.open('[');
    json_.element();
    json_.open('{');
    json_.member("size", ranks.size());
    json_.key("ranks");
    json_.list(ranks, [&](uint32_t rank) { json_.number(rank); });
    json_.close('}');
    json_.close(']');
    json_.close('}');
  }
}

void Writer::write_remotes(const Rank& rank) {
  json_.list(rank.remotes, [&](const RemoteBuffer& remote) {
    json_.open('{');
    json_.member("rank", remote.rank);
    json_.member("type", letter_of(remote.buffer));
    json_.key("access_channel_types");
    json_.list(remote.access, [&](ChannelKind kind) { json_.string(name(kind)); });
    json_.close('}');
  });
}

void Writer::write_semaphores(const Rank& rank) {
  json_.open('[');
  for (const uint32_t value : rank.semaphores) {
    for (uint32_t i = 0; i < program_.instances; ++i) {
      json_.element();
      json_.open('{');
      json_.member("init_value", value);
      json_.close('}');
    }
  }
  json_.close(']');
}

void Writer::write_block(uint64_t number, const Block* block) {
  static const Block kEmpty;
  if (block == nullptr) block = &kEmpty;
  json_.open('{');
  json_.member("id", number);
  json_.key("ops");
  json_.list(block->ops, [&](const Op& op) { write_op(op, block->rank); });
  json_.key("channels");
  write_tables(block->channels, "channel_type", "channel_ids", true);
  json_.key("remote_buffer_refs");
  write_tables(block->remotes, "access_channel_type", "remote_buffer_ids", false);
  json_.close('}');
}

void Writer::write_tables(const Tables& tables, std::string_view kind, std::string_view ids,
                          bool of_each_instance) {
  json_.list(tables.kinds, [&](ChannelKind one) {
    json_.open('{');
    json_.member(kind, name(one));
    json_.key(ids);
    json_.list(tables.of[static_cast<size_t>(one)],
               [&](uint32_t id) { json_.number(of_each_instance ? own(id) : id); });
    json_.close('}');
  });
}

void Writer::write_op(const Op& op, uint32_t rank) {
  json_.open('{');
  json_.member("name", name_of(op));
  const OpInfo& row = info(op.kind);
  if (op.body >= 0) {
    json_.key("iter_context");
    json_.open('{');
    json_.member("unit_size", op.detail[0]);
    json_.member("num_chunks", op.detail[1]);
    json_.close('}');
    json_.key("ops");
    json_.list(program_.bodies[static_cast<size_t>(op.body)],
               [&](const Op& inner) { write_op(inner, rank); });
  } else if (row.has(kMeets)) {
    json_.member("barrier_id", own(op.detail[0]));
    json_.member("num_threadblocks", op.detail[1]);
  } else if (row.has(kReleases) || row.has(kAcquires)) {
    write_ids("semaphore_ids", op.ids, [&](uint32_t id) { return own(id); });
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
    json_.key("src_buff");
    write_references(program_.sources, op.sources, by_switch,
                     stores ? std::optional(rank) : std::nullopt);
    json_.key("dst_buff");
    write_references(program_.destinations, op.destinations, by_switch, std::nullopt);
  }
  if (has_channels(op)) json_.member("channel_type", name(op.channels));
  if (has_channels(op) && names_channels(op))
    write_ids("channel_ids", op.ids, [](uint32_t id) { return id; });
  if (op.reduce != ReduceOp::call) json_.member("reduce_op", name(op.reduce));
  if (op.group_size > 0) {
    json_.key("tbg_info");
    json_.open('{');
    json_.member("tb_id", op.group_at);
    json_.member("tbg_size", op.group_size);
    json_.close('}');
  }
}

void Writer::write_references(const std::vector<Ref>& all, Slice slice, bool by_switch,
                              std::optional<uint32_t> rank) {
  json_.open('[');
  for (uint32_t i = 0; i < slice.count; ++i) {
    const Ref& ref = all[slice.first + i];
    json_.element();
    json_.open('{');
    if (is_local(ref)) {
      json_.member("type", letter_of(ref.where));
    } else {
      json_.member(by_switch ? "switch_channel_id" : "buffer_id", static_cast<uint64_t>(ref.where));
    }
    json_.member("index",
                 uint64_t{ref.first} * program_.instances + uint64_t{instance_} * ref.count);
    json_.member("size", ref.count);
    if (rank) json_.member("rank", *rank);
    json_.close('}');
  }
  json_.close(']');
}

template <class Number>
void Writer::write_ids(std::string_view name, Slice ids, const Number& number) {
  json_.key(name);
  json_.open('[');
  for (uint32_t i = 0; i < ids.count; ++i) {
    json_.element();
    json_.number(number(program_.ids[ids.first + i]));
  }
  json_.close(']');
}

}  // namespace

std::string write_gpus(const Program& program, Layout layout) {
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
