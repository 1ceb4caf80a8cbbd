#include "compiler/msccl/read_xml.h"

#include <expat.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

namespace mscclc::msccl {
namespace {

constexpr uint32_t kMaxGpus = 4096, kMaxChunks = 1 << 20, kMaxChannels = 1024;

/// MSCCL's collectives; nothing for other names.
std::optional<CollectiveKind> find_msccl_collective(std::string_view name) {
  constexpr CollectiveKind kKnown[] = {CollectiveKind::allreduce,     CollectiveKind::allgather,
                                       CollectiveKind::reducescatter, CollectiveKind::alltoall,
                                       CollectiveKind::broadcast,     CollectiveKind::reduce,
                                       CollectiveKind::custom};
  const auto kind = find_collective(name == "reduce_scatter" ? "reducescatter" : name);
  return kind && std::ranges::find(kKnown, *kind) != std::end(kKnown) ? kind : std::nullopt;
}

/// The attributes of one element. What is not asked for is a warning at the end.
class Attributes {
 public:
  Attributes(std::string_view element, const char** list, Span span, Diagnostics& diagnostics)
      : element_(element), list_(list), span_(span), diagnostics_(diagnostics) {}

  /// nullopt: it is not there.
  std::optional<std::string_view> text(std::string_view name) {
    asked_.insert(name);
    for (const char** a = list_; *a != nullptr; a += 2) {
      if (name == a[0]) return a[1];
    }
    return std::nullopt;
  }
  std::string_view required(std::string_view name) {
    if (const auto value = text(name)) return *value;
    complain(fmt::format("'{}' lacks '{}'", element_, name));
    return "";
  }
  /// A number from `least` to `most`; `otherwise` if it is not there.
  int64_t number(std::string_view name, int64_t least, int64_t most,
                 std::optional<int64_t> otherwise = std::nullopt) {
    const auto value = otherwise ? text(name) : std::optional(required(name));
    if (!value) return *otherwise;
    int64_t number = 0;
    const auto [end, error] = std::from_chars(value->data(), value->data() + value->size(), number);
    const bool whole = error == std::errc() && end == value->data() + value->size();
    if (whole && least <= number && number <= most) return number;
    if (!value->empty()) {
      complain(fmt::format("'{}' is a number from {} to {}, not '{}'", name, least, most, *value));
    }
    return least;
  }
  void warn_of_others() {
    for (const char** a = list_; *a != nullptr; a += 2) {
      if (asked_.contains(a[0])) continue;
      diagnostics_.warning("msccl-attribute", span_,
                           fmt::format("'{}' of '{}' is not known, and left out", a[0], element_));
    }
  }
  void complain(const std::string& message) { diagnostics_.error("msccl", span_, message); }

 private:
  std::string_view element_;
  const char** list_;
  Span span_;
  Diagnostics& diagnostics_;
  std::set<std::string_view> asked_;
};

class Reader {
 public:
  Reader(FileId file, Diagnostics& diagnostics) : file_(file), diagnostics_(diagnostics) {}

  bool read(const std::string& text) {
    const std::unique_ptr<XML_ParserStruct, decltype(&XML_ParserFree)> parser(
        XML_ParserCreate(nullptr), XML_ParserFree);
    if (parser == nullptr) throw std::bad_alloc();
    parser_ = parser.get();
    XML_SetUserData(parser_, this);
    XML_SetElementHandler(
        parser_,
        [](void* self, const char* name, const char** attributes) {
          static_cast<Reader*>(self)->begin(name, attributes);
        },
        [](void* self, const char*) { --static_cast<Reader*>(self)->depth_; });
    XML_SetStartDoctypeDeclHandler(
        parser_, [](void* self, const char*, const char*, const char*, int) {
          static_cast<Reader*>(self)->fail("a schedule has no document type");
        });
    constexpr size_t kPart = 1 << 20;
    for (size_t at = 0; at <= text.size(); at += kPart) {
      const size_t n = std::min(kPart, text.size() - at);
      const bool last = at + kPart > text.size();
      if (XML_Parse(parser_, text.data() + at, static_cast<int>(n), last) == XML_STATUS_OK) {
        continue;
      }
      if (!diagnostics_.has_errors()) {
        diagnostics_.error(
            "msccl", here(),
            fmt::format("this is not XML: {}", XML_ErrorString(XML_GetErrorCode(parser_))));
      }
      return false;
    }
    for (size_t gpu = 0; gpu < seen_.size() && !diagnostics_.has_errors(); ++gpu) {
      if (!seen_[gpu]) {
        diagnostics_.error("msccl", algo_,
                           fmt::format("there is no GPU {}: 'ngpus' is {}", gpu, seen_.size()));
      }
    }
    return !diagnostics_.has_errors();
  }

  Schedule schedule;

 private:
  Span here() const {
    const auto begin =
        static_cast<uint32_t>(std::max<XML_Index>(0, XML_GetCurrentByteIndex(parser_)));
    const auto bytes = static_cast<uint32_t>(std::max(1, XML_GetCurrentByteCount(parser_)));
    return {file_, begin, begin + bytes, static_cast<uint32_t>(XML_GetCurrentLineNumber(parser_)),
            static_cast<uint32_t>(XML_GetCurrentColumnNumber(parser_) + 1)};
  }
  void fail(const std::string& message) {
    diagnostics_.error("msccl", here(), message);
    XML_StopParser(parser_, XML_FALSE);
  }

  void begin(std::string_view name, const char** list) {
    constexpr std::string_view kElements[] = {"algo", "gpu", "tb", "step"};
    const uint32_t depth = depth_++;
    if (depth >= std::size(kElements) || name != kElements[depth]) {
      return fail(fmt::format("'{}' where {} is expected", name,
                              depth < std::size(kElements) ? fmt::format("'{}'", kElements[depth])
                                                           : std::string("nothing")));
    }
    Attributes attributes(name, list, here(), diagnostics_);
    if (depth == 0) read_algo(attributes);
    if (depth == 1) read_gpu(attributes);
    if (depth == 2) read_block(attributes);
    if (depth == 3) read_step(attributes);
    attributes.warn_of_others();
  }

  void read_algo(Attributes& a) {
    schedule.name = a.text("name").value_or("");
    const std::string_view collective = a.required("coll");
    if (const auto kind = find_msccl_collective(collective)) {
      schedule.collective = *kind;
    } else {
      a.complain(fmt::format("unknown collective '{}'", collective));
    }
    const std::string_view protocol = a.text("proto").value_or("Simple");
    constexpr std::string_view kProtocols[] = {"Simple", "LL", "LL128"};
    const auto at = std::ranges::find(kProtocols, protocol);
    if (at == std::end(kProtocols))
      a.complain(fmt::format("unknown protocol '{}'", protocol));
    else
      schedule.protocol = static_cast<Protocol>(at - std::begin(kProtocols));
    schedule.gpus.resize(static_cast<size_t>(a.number("ngpus", 1, kMaxGpus)));
    schedule.chunks = static_cast<uint32_t>(a.number("nchunksperloop", 1, kMaxChunks));
    a.number("nchannels", 1, kMaxChannels, 1);
    schedule.in_place = a.number("inplace", 0, 1, 0) != 0;
    schedule.out_of_place = a.number("outofplace", 0, 1, schedule.in_place ? 0 : 1) != 0;
    if (!schedule.in_place && !schedule.out_of_place)
      a.complain("it is neither in place nor out of place");
    schedule.min_bytes = static_cast<uint64_t>(a.number("minBytes", 0, INT64_MAX - 1, 0));
    schedule.max_bytes = static_cast<uint64_t>(a.number("maxBytes", 0, INT64_MAX - 1, 0));
    schedule.root = static_cast<uint32_t>(a.number("root", 0, kMaxGpus, 0));
    a.text("redop");  // the call says which reduction it is
    seen_.resize(schedule.gpus.size());
    algo_ = here();
  }

  void read_gpu(Attributes& a) {
    const auto last = static_cast<int64_t>(schedule.gpus.size()) - 1;
    gpu_ = static_cast<uint32_t>(a.number("id", 0, last));
    if (seen_[gpu_]) a.complain(fmt::format("GPU {} appears twice", gpu_));
    seen_[gpu_] = true;
    schedule.inputs =
        std::max(schedule.inputs, static_cast<uint32_t>(a.number("i_chunks", 0, kMaxChunks, 0)));
    schedule.outputs =
        std::max(schedule.outputs, static_cast<uint32_t>(a.number("o_chunks", 0, kMaxChunks, 0)));
    schedule.gpus[gpu_].scratch = static_cast<uint32_t>(a.number("s_chunks", 0, kMaxChunks, 0));
  }

  void read_block(Attributes& a) {
    std::vector<Block>& blocks = schedule.gpus[gpu_].blocks;
    const auto id = a.number("id", 0, 65535);
    if (id != static_cast<int64_t>(blocks.size())) {
      a.complain(fmt::format("thread block {} where {} is expected", id, blocks.size()));
    }
    Block& block = blocks.emplace_back();
    block.send = peer(a, "send");
    block.receive = peer(a, "recv");
    block.channel = static_cast<uint32_t>(a.number("chan", 0, kMaxChannels, 0));
  }
  uint32_t peer(Attributes& a, std::string_view name) {
    const int64_t peer = a.number(name, -1, static_cast<int64_t>(schedule.gpus.size()) - 1, -1);
    if (peer == gpu_) a.complain(fmt::format("'{}' is the GPU itself", name));
    return peer < 0 ? kNoPeer : static_cast<uint32_t>(peer);
  }

  void read_step(Attributes& a) {
    if (schedule.gpus[gpu_].blocks.empty()) return;
    Block& block = schedule.gpus[gpu_].blocks.back();
    Step step;
    step.span = here();
    const auto number = a.number("s", 0, INT32_MAX, static_cast<int64_t>(block.steps.size()));
    if (number != static_cast<int64_t>(block.steps.size())) {
      a.complain(fmt::format("step {} where {} is expected", number, block.steps.size()));
    }
    const std::string_view type = a.required("type");
    const auto found = std::ranges::find(kStepInfos, type, &StepInfo::name);
    if (found == kStepInfos.end()) {
      if (!type.empty()) a.complain(fmt::format("unknown step '{}'", type));
    } else {
      step.type = static_cast<StepType>(found - kStepInfos.begin());
    }
    step.src = place(a, "srcbuf", "srcoff", step.type == StepType::nop);
    step.dst = place(a, "dstbuf", "dstoff", step.type == StepType::nop);
    step.count = static_cast<uint32_t>(a.number("cnt", 0, kMaxChunks, 1));
    if (step.count == 0 && step.type != StepType::nop) a.complain("a step of no chunks");
    const auto block_before = a.number("depid", -1, 65535, -1);
    const auto step_before = a.number("deps", -1, INT32_MAX, -1);
    a.text("hasdep");  // follows from the others
    if (block_before >= 0 && step_before >= 0) {
      step.after_block = static_cast<uint32_t>(block_before);
      step.after_step = static_cast<uint32_t>(step_before);
    }
    if (step.info().sends && block.send == kNoPeer) a.complain("this thread block sends to no GPU");
    if (step.info().receives && block.receive == kNoPeer) {
      a.complain("this thread block receives from no GPU");
    }
    block.steps.push_back(step);
  }
  ChunkPosition place(Attributes& a, std::string_view buffer, std::string_view first,
                      bool may_lack) {
    const std::string_view name = may_lack ? a.text(buffer).value_or("i") : a.required(buffer);
    const int64_t at = a.number(first, may_lack ? -1 : 0, kMaxChunks,
                                may_lack ? std::optional<int64_t>(0) : std::nullopt);
    constexpr std::string_view kNames[] = {"i", "o", "s"};
    const auto found = std::ranges::find(kNames, name);
    if (found != std::end(kNames)) {
      return {static_cast<Memory>(found - std::begin(kNames)),
              static_cast<uint32_t>(std::max<int64_t>(0, at))};
    }
    if (!name.empty()) a.complain(fmt::format("unknown buffer '{}': expected i, o or s", name));
    return {};
  }

  FileId file_;
  Diagnostics& diagnostics_;
  XML_Parser parser_ = nullptr;
  uint32_t depth_ = 0, gpu_ = 0;
  std::vector<bool> seen_;
  Span algo_;  ///< the first element
};

/// Chunks of a GPU's buffer.
uint32_t chunks_of(const Schedule& s, const Gpu& gpu, Memory memory) {
  if (memory == Memory::scratch) return gpu.scratch;
  const Side side = memory == Memory::input ? Side::input : Side::output;
  if (info(s.collective).side(side).form == SideForm::declared) {
    return side == Side::input ? s.inputs : s.outputs;
  }
  return s.has_rows(side) ? s.chunks : s.part();
}

void check_place(const Schedule& s, uint32_t gpu, const Step& step, ChunkPosition place,
                 Diagnostics& diagnostics) {
  constexpr const char* kNames[] = {"input", "output", "scratch"};
  const uint32_t all = chunks_of(s, s.gpus[gpu], place.memory);
  if (uint64_t{place.first} + step.count <= all) return;
  diagnostics.error("msccl", step.span,
                    fmt::format("chunks {} to {} of the {} of GPU {}, which has {}", place.first,
                                uint64_t{place.first} + step.count - 1,
                                kNames[static_cast<size_t>(place.memory)], gpu, all));
}

/// What concerns several elements.
bool check(const Schedule& s, const Span& top, Diagnostics& diagnostics) {
  const uint32_t ranks = s.ranks();
  if ((s.has_rows(Side::input) || s.has_rows(Side::output)) && s.chunks % ranks != 0) {
    diagnostics.error(
        "msccl", top,
        fmt::format("{} chunks are not the same number for each of {} GPUs", s.chunks, ranks));
    return false;
  }
  if (s.root >= ranks) diagnostics.error("msccl", top, fmt::format("root {} is not a GPU", s.root));
  for (uint32_t g = 0; g < ranks; ++g) {
    for (const Block& block : s.gpus[g].blocks) {
      for (const Step& step : block.steps) {
        const StepInfo& info = step.info();
        if (info.reduces || (info.sends && !info.receives) || step.type == StepType::cpy) {
          check_place(s, g, step, step.src, diagnostics);
        }
        if (info.stores) check_place(s, g, step, step.dst, diagnostics);
        if (step.after_block == kNoPeer) continue;
        const auto& blocks = s.gpus[g].blocks;
        if (step.after_block >= blocks.size() ||
            step.after_step >= blocks[step.after_block].steps.size()) {
          diagnostics.error(
              "msccl", step.span,
              fmt::format("it waits for step {} of thread block {}, which is not there",
                          step.after_step, step.after_block));
        }
      }
    }
  }
  return !diagnostics.has_errors();
}

}  // namespace

std::optional<Schedule> read_xml(const Sources& sources, FileId file, Diagnostics& diagnostics) {
  Reader reader(file, diagnostics);
  const std::string& text = sources.file(file).text;
  if (!reader.read(text)) return std::nullopt;
  const Span top{file, 0, 1, 1, 1};
  if (!check(reader.schedule, top, diagnostics)) return std::nullopt;
  return std::move(reader.schedule);
}

}  // namespace mscclc::msccl
