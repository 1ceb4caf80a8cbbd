#include "tools/tune/trial_log.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/io/files.h"

namespace mscclc::tune {
namespace {

using Json = nlohmann::ordered_json;

std::string key_of(const std::string& call, const std::string& plan, uint32_t pass) {
  return fmt::format("{} {} {}", call, plan, pass);
}

/// "allreduce over 4 ranks, 65536 bytes of f32, ranks"
std::string call_text(const LibraryCall& call) {
  return fmt::format("{} over {} ranks, {} bytes of {}, {}", name(call.kind), call.ranks,
                     call.bytes, info(call.dtype).name, name(call.order));
}

Json line_of(const std::string& call, const std::string& plan, uint32_t pass, const Trial& trial) {
  Json line = {{"call", call}, {"plan", plan}, {"pass", pass}, {"ns", trial.ns}};
  if (trial.wrong != 0) line["wrong"] = trial.wrong;
  if (!trial.why.empty()) line["why"] = trial.why;
  return line;
}

template <class T>
bool take(const Json& line, const char* key, T& out) {
  const auto at = line.find(key);
  if (at == line.end()) return false;
  if constexpr (std::is_same_v<T, std::string>) {
    if (!at->is_string()) return false;
  } else if constexpr (std::is_same_v<T, double>) {
    if (!at->is_number()) return false;
  } else {
    if (!at->is_number_unsigned()) return false;
  }
  out = at->template get<T>();
  return true;
}

/// Reads a line; false: it is none of ours.
bool read_line(const std::string& text, std::string& key, Trial& trial) {
  const Json line = Json::parse(text, nullptr, false);
  std::string call, plan;
  uint32_t pass = 0;
  if (!line.is_object() || !take(line, "call", call) || !take(line, "plan", plan) ||
      !take(line, "pass", pass) || !take(line, "ns", trial.ns)) {
    return false;
  }
  if (trial.ns < 0) return false;
  if (line.contains("wrong") && !take(line, "wrong", trial.wrong)) return false;
  if (line.contains("why") && !take(line, "why", trial.why)) return false;
  key = key_of(call, plan, pass);
  return true;
}

Result<void> append(const std::string& path, const std::string& text) {
  std::FILE* file = std::fopen(path.c_str(), "ae");
  const bool written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const int why = errno;
  const bool closed = file == nullptr || std::fclose(file) == 0;
  if (written && closed) return {};
  return Error{fmt::format("cannot write '{}': {}", path, file_error(written ? errno : why))};
}

std::string heading_of(const std::string& about) {
  return Json({{"mscclc_tune", about}}).dump() + "\n";
}

}  // namespace

Result<TrialLog> TrialLog::open(const std::string& path, const std::string& about) {
  TrialLog log;
  log.path_ = path;
  const std::string heading = heading_of(about);
  std::optional<std::string> text = read_file(path);
  if (!text && errno != ENOENT) {
    return Error{fmt::format("cannot read '{}': {}", path, file_error(errno))};
  }
  if (!text || text->empty()) {
    if (const auto written = write_file(path, heading); !written) return written.error();
    return log;
  }
  if (!text->starts_with(heading)) {
    const std::string first = text->substr(0, text->find('\n'));
    const Json other = Json::parse(first, nullptr, false);
    const bool ours = other.is_object() && other.contains("mscclc_tune");
    return Error{
        ours ? fmt::format("'{}' is of another run ({}, here {}); give another folder, or remove "
                           "the file",
                           path, other["mscclc_tune"].dump(), Json(about).dump())
             : fmt::format("'{}' is no file of 'mscclc tune'; give another folder", path)};
  }
  const size_t end = text->rfind('\n') + 1;
  for (size_t at = heading.size(), number = 2; at < end; ++number) {
    const size_t next = text->find('\n', at);
    std::string key;
    Trial trial;
    if (!read_line(text->substr(at, next - at), key, trial)) {
      return Error{
          fmt::format("'{}', line {}: not a line of 'mscclc tune'; remove it", path, number)};
    }
    log.trials_[key] = std::move(trial);
    at = next + 1;
  }
  // The run was ended while it wrote a line.
  if (end < text->size()) {
    if (const auto written = write_file(path, text->substr(0, end)); !written) {
      return written.error();
    }
  }
  return log;
}

const Trial* TrialLog::find(const LibraryCall& call, const std::string& plan, uint32_t pass) const {
  const auto at = trials_.find(key_of(call_text(call), plan, pass));
  return at == trials_.end() ? nullptr : &at->second;
}

bool TrialLog::add(const LibraryCall& call, const std::string& plan, uint32_t pass,
                   const Trial& trial) {
  trials_[key_of(call_text(call), plan, pass)] = trial;
  const auto written = append(path_, line_of(call_text(call), plan, pass, trial).dump() + "\n");
  if (!written) error_ = written.error();
  return static_cast<bool>(written);
}

}  // namespace mscclc::tune
