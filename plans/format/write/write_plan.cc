// The plan as a whole: header, ranks, bounds, then the extra key. What the extra key says of the
// ranks is made along with them and kept as text until its turn comes.
//
// Large plans are written by several threads: each takes the next few ranks, and hands their text
// on when the ranks before have been handed on.
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "ir/program/rank_parts.h"
#include "ir/support/precondition.h"
#include "plans/format/json/content_hash.h"
#include "plans/format/json/json_out.h"
#include "plans/format/plan_json.h"
#include "plans/format/wire/message_bounds.h"
#include "plans/format/write/extra_key.h"
#include "plans/format/write/rank_writer.h"
#include "plans/format/write/target_limits.h"

namespace mscclc {
namespace {

/// What a plan ends with.
enum class Ending { hash, nothing };

/// What is handed on, and the hash of it.
class HashedSink {
 public:
  HashedSink(const TextSink& sink, Ending ending) : sink_(sink), ending_(ending) {}
  bool write(std::string_view text) {
    if (ending_ == Ending::hash && !of_origin_) hash_.update(text);
    return hand_on(text);
  }
  /// What comes is where the plan comes from, or no longer: it is not hashed.
  void set_origin(bool of_origin) { of_origin_ = of_origin; }
  /// The same, of what the extra key says of whole ranks: `loc` is each one's last member.
  bool write_ranks(std::string_view text) {
    if (ending_ == Ending::hash) {
      constexpr std::string_view kLocations = "\"loc\":[";
      std::string_view rest = text;
      for (size_t at = rest.find(kLocations); at != rest.npos; at = rest.find(kLocations)) {
        const bool first = at == 0 || rest[at - 1] != ',';
        hash_.update(rest.substr(0, first ? at : at - 1));
        rest.remove_prefix(rest.find(']', at) + 1);  // numbers only
      }
      hash_.update(rest);
    }
    return hand_on(text);
  }
  /// The hash is of the text without it, which stands before the last two braces.
  bool finish() {
    if (ending_ == Ending::nothing) return write("}}");
    hash_.update("}}");
    return !stopped_ && sink_(",\"hash\":\"" + hash_.digits() + "\"}}");
  }

 private:
  bool hand_on(std::string_view text) {
    stopped_ = stopped_ || !sink_(text);
    return !stopped_;
  }

  const TextSink& sink_;
  const Ending ending_;
  ContentHash hash_;
  bool of_origin_ = false;
  bool stopped_ = false;
};

/// Appends what is written to a string.
TextSink append_to(std::string& text) {
  return [&text](std::string_view more) {
    text += more;
    return true;
  };
}

/// Our executor counts calls on the device. MSCCL++'s host does, and a captured launch keeps the
/// number that it had: packets and doubled scratch are then wrong from the second replay on.
ProofRecord record_of(const WireLayout& layout, const Target& target, const Proof& proof) {
  const bool by_host = target.mscclpp_wire_only && (layout.packets || layout.double_scratch);
  return {kProverVersion, target.name, !by_host, proof};
}

class PlanWriter {
 public:
  PlanWriter(const Program& program, const Target& target, const TextSink& sink,
             Diagnostics& diagnostics, const Proof* proof, Ending ending = Ending::hash)
      : program_(program),
        target_(target),
        proof_(proof),
        sink_(sink, ending),
        report_(program, diagnostics),
        layout_(lay_out(program)),
        out_([this](std::string_view text) { return sink_.write(text); }),
        used_loops_(program.loops.size()) {}

  bool write(uint32_t threads) {
    TargetLimits(program_, target_, report_).check_program(layout_);
    if (!check_scratch() || report_.any()) return false;
    write_header();
    if (threads == 1) {
      write_ranks();
    } else {
      write_ranks(threads);
    }
    if (report_.any()) return false;
    write_bounds();
    write_extra();
    if (bad_text_ || out_.bad_text()) {
      report_.error("not-utf8", "a name or the description is not UTF-8; a plan cannot hold it");
    }
    return !report_.any() && sink_.finish();
  }

 private:
  bool check_scratch() {
    for (const uint64_t chunks : layout_.scratch_chunks) {
      if (chunks < kNone) continue;
      report_.error("too-much-scratch", "a rank has 2^32 scratch chunks or more");
      return false;
    }
    return true;
  }

  void write_header() {
    json_.open('{');
    json_.members("name", program_.name, "collective", name(program_.contract.kind), "protocol",
                  layout_.packets ? "LL" : "Simple", "inplace",
                  program_.contract.in_place == InPlace::yes, "reuse_resources",
                  program_.launch.reuse_scratch, "gpus", [&] { json_.open('['); });
  }

  void write_ranks() {
    std::string& text = extra_.emplace_back();
    JsonOut extra(append_to(text));
    RankWriter writer(program_, layout_, target_, report_, out_, extra);
    for (uint32_t r = 0; r < program_.ranks.size() && !report_.enough(); ++r) writer.write(r);
    extra.flush();
    gather(writer, extra);
  }

  void gather(const RankWriter& writer, const JsonOut& extra) {
    const std::vector<bool>& used = writer.used_loops();
    for (size_t i = 0; i < used.size(); ++i) used_loops_[i] = used_loops_[i] || used[i];
    bad_text_ |= extra.bad_text();
  }

  /// The next ranks that a thread writes: so many that handing them on is little work beside.
  struct Batch {
    RankRange ranks;
    size_t index = 0;  ///< of the batch
  };

  void write_ranks(uint32_t threads) {
    out_.flush();
    run_threads(threads, [this](uint32_t) {
      try {
        write_batches();
      } catch (...) {
        stop();
        throw;
      }
    });
    if (wrong_) report_again();
  }

  void write_batches() {
    std::string text, extra_text;
    JsonOut out(append_to(text)), extra(append_to(extra_text));
    Diagnostics diagnostics;
    ProgramReport report(program_, diagnostics);
    RankWriter writer(program_, layout_, target_, report, out, extra);
    for (Batch batch = take_batch(); batch.ranks.begin != batch.ranks.end; batch = take_batch()) {
      for (uint32_t r = batch.ranks.begin; r < batch.ranks.end; ++r) writer.write(r);
      out.flush();
      extra.flush();
      if (!hand_on(batch.index, text, extra_text, report.any())) break;
      text.clear();
      extra_text.clear();
    }
    const std::lock_guard lock(mutex_);
    gather(writer, extra);
    bad_text_ |= out.bad_text();
  }

  Batch take_batch() {
    constexpr uint64_t kOps = 8192;
    const std::lock_guard lock(mutex_);
    const uint32_t ranks = static_cast<uint32_t>(program_.ranks.size());
    Batch batch{{next_rank_, next_rank_}, batches_};
    if (stopped_) return batch;
    for (uint64_t ops = 0; batch.ranks.end < ranks && ops < kOps; ++batch.ranks.end) {
      ops += program_.ranks[batch.ranks.end].ops.size();
    }
    next_rank_ = batch.ranks.end;
    batches_ += batch.ranks.begin != batch.ranks.end;
    return batch;
  }

  /// False if all is to stop.
  bool hand_on(size_t batch, const std::string& text, const std::string& extra, bool wrong) {
    {
      std::unique_lock lock(mutex_);
      turn_.wait(lock, [&] { return handed_on_ == batch || stopped_; });
      if (stopped_) return false;
      wrong_ = wrong;
    }
    if (wrong || !sink_.write(text)) {
      stop();
      return false;
    }
    extra_.push_back(extra);  // it is this thread's turn
    const std::lock_guard lock(mutex_);
    ++handed_on_;
    turn_.notify_all();
    return true;
  }

  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    turn_.notify_all();
  }

  /// After an error: writes the ranks again, one by one, for errors as one thread reports them.
  void report_again() {
    JsonOut nowhere([](std::string_view) { return true; });
    JsonOut extra([](std::string_view) { return true; });
    RankWriter writer(program_, layout_, target_, report_, nowhere, extra);
    for (uint32_t r = 0; r < program_.ranks.size() && !report_.enough(); ++r) writer.write(r);
  }

  void write_bounds() {
    const Range sizes = wire_sizes(program_, layout_, used_loops_);
    json_.close(']');
    json_.members("num_threads_per_block", program_.launch.threads, "use_double_scratch_buffer",
                  layout_.double_scratch, "buffer_alignment", program_.launch.align,
                  "min_message_size", sizes.min, "max_message_size", sizes.max);
  }

  void write_extra() {
    json_.members("mscclc", [&] { json_.open('{'); });
    write_version(json_, target_.name);
    write_origin([&] { write_description(json_, program_); });
    write_terms(json_, program_);
    write_origin([&] { write_sites(json_, program_); });
    json_.members("ranks", [&] {
      json_.open('[');
      out_.flush();
      for (const std::string& text : extra_) sink_.write_ranks(text);
      json_.close(']');
    });
    if (proof_ != nullptr) {
      json_.members("proof", [&] { out_.text(proof_text(record_of(layout_, target_, *proof_))); });
    }
    out_.flush();
  }

  /// Members that are not hashed.
  template <class Write>
  void write_origin(Write&& write) {
    out_.flush();
    sink_.set_origin(true);
    write();
    out_.flush();
    sink_.set_origin(false);
  }

  const Program& program_;
  const Target& target_;
  const Proof* proof_;
  HashedSink sink_;
  ProgramReport report_;
  const WireLayout layout_;
  JsonOut out_;
  JsonWriter json_{out_};
  std::vector<std::string> extra_;  ///< what the extra key says of ranks, in their order
  std::vector<bool> used_loops_;
  bool bad_text_ = false;

  // Threads that write ranks.
  std::mutex mutex_;
  std::condition_variable turn_;
  uint32_t next_rank_ = 0;
  size_t batches_ = 0, handed_on_ = 0;
  bool stopped_ = false;  ///< after an error, which may be the sink's
  bool wrong_ = false;    ///< an error was reported
};

/// About as many bytes as the plan will have, rather too many: pages not used cost nothing.
size_t estimate(const Program& program) {
  size_t bytes = 4096 + program.operands.count() * 50 + program.locations.count() * 12;
  for (const Rank& rank : program.ranks) {
    bytes += 1024 + rank.ops.size() * 70 + rank.channels.size() * 24;
    bytes += rank.blocks * size_t{128};
  }
  return bytes;
}

}  // namespace

bool write_plan(const Program& program, const Target& target,
                const std::function<bool(std::string_view)>& sink, Diagnostics& diagnostics,
                const Proof* proof, uint32_t threads) {
  precondition(program.split && (proof == nullptr || proof->proved));
  return PlanWriter(program, target, sink, diagnostics, proof)
      .write(thread_count(program, threads));
}

std::optional<std::string> write_plan(const Program& program, const Target& target,
                                      Diagnostics& diagnostics, const Proof* proof) {
  std::string text;
  text.reserve(estimate(program));
  if (!write_plan(program, target, append_to(text), diagnostics, proof)) return std::nullopt;
  return text;
}

bool write_canonical(const Program& program, const std::function<bool(std::string_view)>& sink,
                     Diagnostics& diagnostics) {
  const Target none;
  return PlanWriter(program, none, sink, diagnostics, nullptr, Ending::nothing)
      .write(thread_count(program, 0));
}

ProofRecord proof_record(const Program& program, const Target& target, const Proof& proof) {
  return record_of(lay_out(program), target, proof);
}

}  // namespace mscclc
