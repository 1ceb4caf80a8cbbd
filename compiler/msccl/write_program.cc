#include "compiler/msccl/write_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace mscclc::msccl {
namespace {

/// A word of the language.
std::string word(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte < 128 && std::isalnum(byte) != 0 ? c : '_';
  }
  if (out.empty() || std::isdigit(static_cast<unsigned char>(out[0])) != 0)
    out.insert(0, "schedule_");
  return out;
}

/// `buffer` from chunk `first` on.
std::string range(const std::string& buffer, uint32_t first, uint32_t count) {
  return count == 1 ? fmt::format("{}[{}]", buffer, first)
                    : fmt::format("{}[{}..{}]", buffer, first, first + count);
}

class Writer {
 public:
  Writer(const Schedule& schedule, const Order& order, const WriteOptions& options)
      : schedule_(schedule), order_(order), options_(options) {
    steps_.resize(schedule.gpus.size());
    for (const StepId& id : order.steps) {
      steps_[id.gpu].push_back(id);
      const Step& step = schedule_.step(id);
      if (waits(id)) dependents_[{id.gpu, step.after_block, step.after_step}].push_back(id);
    }
    for (const auto& [c, messages] : order.messages) {
      for (const Message& m : messages) {
        rooms_[m.sent].out = {&c, m.first};
        rooms_[m.received].in = {&c, m.first};
      }
    }
  }

  std::string run() {
    write_head();
    for (uint32_t g = 0; g < schedule_.gpus.size(); ++g) write_rank(g);
    return std::move(out_);
  }

 private:
  /// Where a message lies at its receiver.
  struct Room {
    const Connection* connection = nullptr;
    uint32_t first = 0;
  };
  struct Rooms {
    Room in, out;
  };

  void line(const std::string& text) { out_ += text + "\n"; }

  void write_head() {
    line(fmt::format(
        "# {}: a schedule of MSCCL, in which each message has room of its own at its receiver.",
        word(schedule_.name)));
    line(options_.opening
             ? "# Two calls: a rank sends when the receiver has said that it is in this call."
             : "# Two calls: packets have two copies.");
    line("program " + word(schedule_.name));
    std::string shape = fmt::format("chunks: {}", schedule_.part());
    if (schedule_.collective == CollectiveKind::custom) {
      shape = fmt::format("input: {}, output: {}", schedule_.inputs, schedule_.outputs);
    }
    if (has_root(schedule_.collective)) {
      shape += fmt::format(", root: {}", schedule_.root);
    }
    const char* placed = !schedule_.in_place ? "false" : schedule_.out_of_place ? "either" : "true";
    line(fmt::format("collective {}(ranks: {}, {}, inplace: {})",
                     mscclc::name(schedule_.collective), schedule_.ranks(), shape, placed));
    if (schedule_.min_bytes != 0 || schedule_.max_bytes != 0) {
      const std::string end =
          schedule_.max_bytes == 0 ? "" : std::to_string(schedule_.max_bytes + 1);
      line(fmt::format("select sizes: {}..{}", schedule_.min_bytes, end));
    }
  }

  bool far(const Connection& c) const {
    const uint32_t node = options_.gpus_per_node;
    return node != 0 && c.from / node != c.to / node;
  }
  bool packets(const Connection& c) const {
    return schedule_.protocol != Protocol::simple && !far(c);
  }
  bool opens(const Connection& c) const { return options_.opening || !packets(c); }

  static std::string room(const Connection& c) {
    return fmt::format("from_{}_{}_box", c.from, c.channel);
  }
  static std::string out_end(const Connection& c) {
    return fmt::format("to_{}_{}", c.to, c.channel);
  }
  static std::string in_end(const Connection& c) {
    return fmt::format("from_{}_{}", c.from, c.channel);
  }
  static std::string semaphore(const Step& later, const StepId& id) {
    return fmt::format("done_{}_{}_{}_{}", later.after_block, later.after_step, id.block, id.step);
  }

  bool waits(const StepId& id) const {
    const Step& step = schedule_.step(id);
    return step.after_block != kNoPeer && step.after_block != id.block;
  }

  void write_rank(uint32_t g) {
    line(fmt::format("rank {} {{", g));
    declare(g);
    open_call(g);
    uint32_t block = kNoPeer;
    for (const StepId& id : steps_[g]) {
      if (id.block != block) {
        if (block != kNoPeer) line("}");
        line(fmt::format("tb {} {{", id.block));
        block = id.block;
      }
      write_step(id);
    }
    if (block != kNoPeer) line("}");
    line("}");
  }

  void declare(uint32_t g) {
    if (schedule_.gpus[g].scratch != 0) {
      line(fmt::format("buffer scratch[{}]", schedule_.gpus[g].scratch));
    }
    kept_ = 0;
    for (const StepId& id : steps_[g]) {
      const StepInfo& info = schedule_.step(id).info();
      if (info.reduces && !info.stores) kept_ += schedule_.step(id).count;
    }
    if (kept_ != 0) line(fmt::format("buffer kept[{}]", std::exchange(kept_, 0)));
    for (const auto& [c, messages] : order_.messages) {
      if (c.to == g) {
        const char* format = schedule_.protocol == Protocol::ll ? "LL16" : "LL128";
        const std::string options =
            packets(c) ? fmt::format(" packets: {}, copies: {}", format, options_.opening ? 1 : 2)
                       : "";
        line(fmt::format("buffer {}[{}]{}", room(c), order_.room(schedule_, c), options));
      }
      const char* kind = far(c) ? "port" : "memory";
      if (c.from == g)
        line(fmt::format("channel {} = {}({}) to {}", out_end(c), kind, c.to, in_end(c)));
      if (c.to == g)
        line(fmt::format("channel {} = {}({}) to {}", in_end(c), kind, c.from, out_end(c)));
    }
    for (const StepId& id : steps_[g]) {
      if (waits(id)) line("semaphore " + semaphore(schedule_.step(id), id));
    }
  }

  /// Each receiver says that it is in the call; each sender waits for that.
  void open_call(uint32_t g) {
    for (const bool says : {true, false}) {
      for (const auto& [c, messages] : order_.messages) {
        if ((says ? c.to : c.from) != g || !opens(c)) continue;
        const StepId& first = says ? messages[0].received : messages[0].sent;
        line(says ? fmt::format("tb {} {{ signal {} relaxed }}", first.block, in_end(c))
                  : fmt::format("tb {} {{ wait {} relaxed }}", first.block, out_end(c)));
      }
    }
  }

  void write_step(const StepId& id) {
    const Step& step = schedule_.step(id);
    const Rooms& rooms = rooms_[id];
    const Connection *in = rooms.in.connection, *out = rooms.out.connection;
    if (waits(id)) line("acquire " + semaphore(step, id));
    if (in != nullptr && !packets(*in)) line("wait " + in_end(*in));
    for (uint32_t at = 0; at < step.count && step.type != StepType::nop;) {
      const uint32_t count = piece(step, at);
      move(step, rooms, at, count);
      at += count;
    }
    if (step.info().reduces && !step.info().stores) kept_ += step.count;
    if (out != nullptr && !packets(*out)) {
      line("signal " + out_end(*out));
      if (far(*out)) line("flush " + out_end(*out));
    }
    const auto later = dependents_.find(id);
    if (later == dependents_.end()) return;
    for (const StepId& other : later->second)
      line("release " + semaphore(schedule_.step(other), other));
  }

  /// How many chunks from `at` on lie in one row of all operands.
  uint32_t piece(const Step& step, uint32_t at) const {
    uint32_t count = step.count - at;
    const StepInfo& info = step.info();
    if (info.stores) count = std::min(count, in_row(step.dst, at));
    if (uses_source(step)) count = std::min(count, in_row(step.src, at));
    return count;
  }
  static bool uses_source(const Step& step) {
    return step.info().reduces || step.type == StepType::s || step.type == StepType::cpy;
  }
  /// Chunks of a row; 0: the buffer has none.
  uint32_t row(Memory memory) const {
    if (memory == Memory::scratch) return 0;
    const Side side = memory == Memory::input ? Side::input : Side::output;
    return schedule_.has_rows(side) ? schedule_.part() : 0;
  }
  uint32_t in_row(const ChunkPosition& place, uint32_t at) const {
    const uint32_t chunks = row(place.memory);
    return chunks == 0 ? ~0u : chunks - (place.first + at) % chunks;
  }
  std::string text(const ChunkPosition& place, uint32_t at, uint32_t count) const {
    constexpr const char* kNames[] = {"input", "output", "scratch"};
    const std::string name = kNames[static_cast<size_t>(place.memory)];
    const uint32_t first = place.first + at, chunks = row(place.memory);
    if (chunks == 0) return range(name, first, count);
    const uint32_t column = first % chunks;
    return count == 1 ? fmt::format("{}[{}, {}]", name, first / chunks, column)
                      : fmt::format("{}[{}, {}..{}]", name, first / chunks, column, column + count);
  }

  /// The ops of some chunks of a step.
  void move(const Step& step, const Rooms& rooms, uint32_t at, uint32_t count) {
    const StepInfo& info = step.info();
    const Connection *in = rooms.in.connection, *out = rooms.out.connection;
    const bool from_packets = in != nullptr && packets(*in);
    const std::string received = in == nullptr ? "" : range(room(*in), rooms.in.first + at, count);
    const std::string src = text(step.src, at, count), dst = text(step.dst, at, count);
    const std::string result = info.stores ? dst : range("kept", kept_ + at, count);
    std::string sent = result;
    if (step.type == StepType::s) sent = src;
    if (step.type == StepType::cpy) line(fmt::format("copy {} <- {}", dst, src));
    if (step.type == StepType::re) line(fmt::format("reduce {0} <- {0}, {1}", dst, src));
    if (info.receives && info.reduces) {
      line(fmt::format("{} {} <- {}, {}", from_packets ? "reduce_packets" : "reduce", result, src,
                       received));
    } else if (info.receives) {
      line(fmt::format("{} {} <- {}", from_packets ? "unpack_packets" : "copy", dst, received));
      sent = received;
    }
    if (out != nullptr)
      send(*out, rooms.out.first + at, count, sent,
           sent == received && from_packets ? &dst : nullptr);
  }

  /// `unpacked`: where else the data is, if `from` are packets.
  void send(const Connection& c, uint32_t first, uint32_t count, const std::string& from,
            const std::string* unpacked) {
    const std::string to = fmt::format("{}.{}", out_end(c), range(room(c), first, count));
    if (!packets(c)) return line(fmt::format("put {} <- {}", to, unpacked ? *unpacked : from));
    line(fmt::format("{} {} <- {}", unpacked ? "read_put_packets" : "put_packets", to, from));
  }

  const Schedule& schedule_;
  const Order& order_;
  const WriteOptions& options_;
  std::vector<std::vector<StepId>> steps_;            ///< by GPU, in order
  std::map<StepId, std::vector<StepId>> dependents_;  ///< steps of other blocks that wait for it
  std::map<StepId, Rooms> rooms_;
  uint32_t kept_ = 0;  ///< chunks of `kept` in use
  std::string out_;
};

}  // namespace

std::string write_program(const Schedule& schedule, const Order& order,
                          const WriteOptions& options) {
  return Writer(schedule, order, options).run();
}

}  // namespace mscclc::msccl
