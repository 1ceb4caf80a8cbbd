// The builder's header calls, placing of ops, and how it reports. Declarations are in
// builder_declare.cc, pairing of channels in builder_pair.cc, indexes in builder_layout.cc, ops in
// builder_ops.cc, the checks at the end in builder_check.cc.
#include "compiler/builder/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "compiler/builder/builder_state.h"

namespace mscclc {

/// Places for C++ programs: what at() was last given.
class BuilderState::CallOrigin : public Origin {
 public:
  explicit CallOrigin(Sources* sources) : sources_(sources) {}
  Span span(Mark) override { return span_; }
  std::string_view text(Mark) override { return {}; }
  void add_context(Diagnostic& d) override {
    if (!context_.empty()) d.notes.push_back({"when " + context_, d.span});
  }
  void set(const char* file, uint32_t line, std::string context) {
    context_ = std::move(context);
    if (sources_ == nullptr) return;
    const auto [it, added] = files_.try_emplace(file, 0);
    if (added) it->second = sources_->add(file, "");
    span_ = {it->second, 0, 0, line, 1};
  }

 private:
  Sources* sources_;
  std::map<std::string, FileId> files_;
  std::string context_;
  Span span_;
};

std::string counted(int64_t n, std::string_view noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string times(int64_t n, bool in_words) {
  static constexpr std::string_view kWords[] = {"three", "four",  "five", "six",
                                                "seven", "eight", "nine"};
  if (n == 0) return "never";
  if (n == 1) return "once";
  if (n == 2) return "twice";
  if (in_words && n < 10) return fmt::format("{} times", kWords[n - 3]);
  return fmt::format("{} times", n);
}

std::string blocks_text(const List& list) {
  if (list.count < 2 || !list.consecutive()) return list_text(list);
  return fmt::format("{}..{}", list[0], list[list.count - 1] + 1);
}

std::string list_text(const List& list) {
  constexpr int64_t kShown = 16;
  std::string out = "[";
  const int64_t head = list.count <= kShown ? list.count : kShown / 2;
  for (int64_t i = 0; i < head; ++i)
    fmt::format_to(std::back_inserter(out), "{}{}", i ? ", " : "", list[i]);
  if (head < list.count) {
    fmt::format_to(std::back_inserter(out), ", ..., {}", list[list.count - 1]);
  }
  return out + "]";
}

// ---- reporting -------------------------------------------------------------------------------

BuilderState::BuilderState(Diagnostics& diagnostics_in, Origin* origin_in, Sources* sources)
    : diagnostics(diagnostics_in), origin(origin_in) {
  if (origin == nullptr) {
    own_origin = std::make_unique<CallOrigin>(sources);
    origin = own_origin.get();
  }
  input_name = program.intern("input");
  output_name = program.intern("output");
}

BuilderState::~BuilderState() = default;

Diagnostic& BuilderState::fail(std::string code, Mark mark, std::string message) {
  failed = true;
  Diagnostic& d = diagnostics.error(std::move(code), origin->span(mark), std::move(message));
  origin->add_context(d);
  return d;
}

Diagnostic& BuilderState::warn(std::string code, Mark mark, std::string message) {
  Diagnostic& d = diagnostics.warning(std::move(code), origin->span(mark), std::move(message));
  origin->add_context(d);
  return d;
}

void BuilderState::note(Diagnostic& d, Mark mark, std::string text) {
  d.notes.push_back({std::move(text), origin->span(mark)});
}

// ---- header ----------------------------------------------------------------------------------

Builder::Builder(Diagnostics& diagnostics, Origin* origin, Sources* sources)
    : state_(std::make_unique<BuilderState>(diagnostics, origin, sources)) {}
Builder::~Builder() = default;

Program& Builder::program() { return state_->program; }
NameId Builder::intern(std::string_view name) { return state_->program.intern(name); }
void Builder::set_max_ops(uint64_t max_ops) { state_->max_ops = max_ops; }
bool Builder::gave_up() const { return state_->gave_up; }

bool Builder::launch(const Launch& launch, const LaunchMarks& marks) {
  BuilderState& s = *state_;
  bool good = true;
  if (launch.threads < 1 || launch.threads > 1024 || launch.threads % kWarpThreads != 0) {
    s.fail("launch", marks.threads,
           fmt::format("'threads' is {}; a thread block has 32 to 1024, in whole warps of {}",
                       launch.threads, kWarpThreads));
    good = false;
  }
  if (launch.instances < 1 || launch.instances > 1024) {
    s.fail("launch", marks.instances,
           fmt::format("'instances' is {}; expected 1 to 1024", launch.instances));
    good = false;
  }
  if (!is_alignment(launch.align)) {
    s.fail("launch", marks.align,
           fmt::format("'align' is {}; expected a multiple of 16 up to 1 MiB", launch.align));
    good = false;
  }
  if (good) s.program.launch = launch;
  return good;
}

// ---- where ops go ----------------------------------------------------------------------------

bool Builder::block(int64_t block, Mark mark) {
  BuilderState& s = *state_;
  s.block = s.group = kNone;
  if (!s.ready()) return false;
  if (block < 0 || block >= kMaxBlocks) {
    s.fail("block", mark, fmt::format("tb {}: thread blocks are 0 to {}", block, kMaxBlocks - 1));
    return false;
  }
  const auto b = static_cast<uint32_t>(block);
  if (!s.need_block(b)) return false;
  s.block = b;
  if (s.block_uses[b].mark.end == 0) s.block_uses[b].mark = mark;
  return true;
}

bool BuilderState::need_block(uint32_t b) {
  if (b < out->blocks) return true;
  blocks += b + 1 - out->blocks;
  if (blocks > max_ops) {
    if (!gave_up) fail("too-many-ops", {}, fmt::format("more than {} thread blocks", max_ops));
    gave_up = true;
    return false;
  }
  out->blocks = b + 1;
  if (b >= block_uses.size()) block_uses.resize(2 * b + 4);
  return true;
}

void BuilderState::leave_rank() {
  if (out == nullptr) return;
  for (uint32_t b = 0; b < out->blocks; ++b) {
    const bool full = empty_blocks.size() >= kMaxEmptyBlocks;
    if (!block_uses[b].has_ops && !full) empty_blocks.push_back({rank, b, block_uses[b].mark});
    block_uses[b] = {};
  }
}

bool Builder::group(const List& blocks, Mark mark) {
  BuilderState& s = *state_;
  s.block = s.group = kNone;
  if (!s.ready()) return false;
  if (blocks.count == 0) {
    s.fail("group", mark, "an empty group");
    return false;
  }
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < blocks.count; ++i) {
    const int64_t b = blocks[i];
    if (b < 0 || b >= kMaxBlocks) {
      s.fail("block", mark, fmt::format("tb {}: thread blocks are 0 to {}", b, kMaxBlocks - 1));
      return false;
    }
    if (blocks.data != nullptr && std::ranges::find(ids, b) != ids.end()) {
      s.fail("group", mark, fmt::format("tb {} appears twice in the group", b));
      return false;
    }
    ids.push_back(b);
  }
  if (!s.need_block(static_cast<uint32_t>(*std::ranges::max_element(ids)))) return false;
  const auto [it, added] =
      s.groups.try_emplace(ids, static_cast<uint32_t>(s.program.groups.size()));
  if (added) s.program.groups.push_back(s.program.append(ids));
  s.group = it->second;
  return true;
}

void Builder::no_place() { state_->block = state_->group = kNone; }

bool Builder::pipeline(int64_t unit, int64_t chunks, Mark unit_mark, Mark chunks_mark) {
  BuilderState& s = *state_;
  if (s.loop != kNone) {
    s.fail("nesting", unit_mark, "a pipeline inside a pipeline");
    return false;
  }
  const uint32_t align = s.program.launch.align;
  if (unit < 1 || unit % align != 0) {
    s.fail("pipeline-unit", unit_mark,
           fmt::format("'unit' {} is not a positive multiple of {}", unit, align));
    return false;
  }
  if (chunks < 1 || chunks > kMaxChunks) {
    s.fail("pipeline-chunks", chunks_mark, fmt::format("a pipeline over {} chunks", chunks));
    return false;
  }
  s.loop = static_cast<uint32_t>(s.program.loops.size());
  s.loop_chunks = static_cast<uint32_t>(chunks);
  s.program.loops.push_back({static_cast<uint64_t>(unit), s.loop_chunks});
  // Rounds are ceil(chunks * longest / unit): equal for every message if the ratio is.
  const int64_t divisor = std::gcd(unit, chunks);
  const std::pair<uint64_t, uint64_t> ratio(unit / divisor, chunks / divisor);
  const auto next = static_cast<uint32_t>(s.round_classes.size() + 1);
  s.rounds = s.round_classes.try_emplace(ratio, next).first->second;
  return true;
}

bool Builder::resume_pipeline(uint32_t loop, int64_t unit, int64_t chunks, Mark mark) {
  BuilderState& s = *state_;
  const Loop& l = s.program.loops[loop];
  if (unit != static_cast<int64_t>(l.unit) || chunks != l.chunks) {
    s.fail("pipeline-differs", mark,
           fmt::format("this pipeline was begun with unit: {}, chunks: {}", l.unit, l.chunks));
    return false;
  }
  if (!pipeline(static_cast<int64_t>(l.unit), l.chunks)) return false;
  s.program.loops.pop_back();
  s.loop = loop;
  return true;
}

uint32_t Builder::present_pipeline() const { return state_->loop; }

void Builder::end_pipeline() {
  state_->loop = kNone;
  state_->rounds = 0;
}

// ---- locations -------------------------------------------------------------------------------

void Builder::at_site(uint32_t site, Slice values) {
  state_->site = site;
  state_->values = values;
  state_->locations = {};
}

void Builder::at_locations(Slice locations) {
  state_->site = kNone;
  state_->locations = locations;
}

void Builder::at(std::initializer_list<std::pair<std::string_view, int64_t>> variables,
                 const char* file, uint32_t line) {
  BuilderState& s = *state_;
  Program& p = s.program;
  Site site{0, line, 1, {}};
  std::vector<int64_t> values;
  std::string context;
  for (const auto& [name, value] : variables) {
    site.variables.push_back(p.intern(name));
    values.push_back(value);
    fmt::format_to(std::back_inserter(context), "{}{} = {}", context.empty() ? "" : ", ", name,
                   value);
  }
  if (s.own_origin) {
    static_cast<BuilderState::CallOrigin&>(*s.own_origin).set(file, line, std::move(context));
  }
  site.file = static_cast<FileId>(std::ranges::find(p.files, file) - p.files.begin());
  if (site.file == p.files.size()) p.files.emplace_back(file);
  at_site(site_id(std::move(site)), p.append(values));
}

uint32_t Builder::site_id(Site site) {
  BuilderState& s = *state_;
  std::vector<uint32_t> key = {site.file, site.line, site.column};
  key.insert(key.end(), site.variables.begin(), site.variables.end());
  const auto next = static_cast<uint32_t>(s.program.sites.size());
  const auto [it, added] = s.sites.try_emplace(std::move(key), next);
  if (added) s.program.sites.push_back(std::move(site));
  return it->second;
}

}  // namespace mscclc
