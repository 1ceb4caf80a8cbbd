#include "tools/bench/measure/run_log.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "tools/bench/ranks/gpu_share.h"
#include "tools/bench/results/record.h"
#include "tools/bench/support/statistics.h"
#include "tools/io/progress.h"

namespace mscclc::bench {
namespace {

uint64_t file_bytes(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 ? static_cast<uint64_t>(status.st_size) : 0;
}

/// "NVIDIA H200" of "cuda:0 (NVIDIA H200)".
std::string model_of(const std::string& device) {
  const size_t open = device.find('('), close = device.rfind(')');
  return close == std::string::npos || open > close ? device
                                                    : device.substr(open + 1, close - open - 1);
}

/// What all ranks give, in rank order; each gives as many values.
template <class Value>
bool gather(Communicator& communicator, const std::vector<Value>& own,
            std::vector<std::vector<Value>>& ranks, Diagnostics& diagnostics) {
  std::vector<std::vector<uint8_t>> all;
  const auto* bytes = reinterpret_cast<const uint8_t*>(own.data());
  if (!communicator.bootstrap().all_gather({bytes, own.size() * sizeof(Value)}, "values", all,
                                           diagnostics)) {
    return false;
  }
  for (const std::vector<uint8_t>& rank : all) {
    ranks.emplace_back(own.size());
    std::memcpy(ranks.back().data(), rank.data(),
                std::min(rank.size(), own.size() * sizeof(Value)));
  }
  return true;
}

}  // namespace

std::string RunLog::machine() const {
  const Device& device = communicator_.device();
  return machine_text(communicator_.size(), gpus_, model_of(device.name()),
                      device.multiprocessors());
}

void RunLog::print(const std::string& text) const {
  if (communicator_.rank() != 0) return;
  Progress::hide();
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

void RunLog::append(const std::string& line) const {
  if (communicator_.rank() != 0) return;
  if (write(record_file_, line.data(), line.size()) < 0) print("# cannot write the results\n");
}

void RunLog::start_up(const std::string& what, double milliseconds, bool show) const {
  append(start_up_line({what, milliseconds, 0}));
  if (show) print(fmt::format("# {}: {:.1f} ms\n", what, milliseconds));
}

void RunLog::file_size(const std::string& what, const std::string& path) const {
  const uint64_t bytes = file_bytes(path);
  append(start_up_line({what, 0, bytes}));
  print(fmt::format("# {}: {:.1f} MB\n", what, static_cast<double>(bytes) / 1e6));
}

void RunLog::leave_out(const std::string& who, const std::string& collective,
                       const std::string& why, const Workload* at) const {
  std::string where = who;
  if (at != nullptr) {
    where += fmt::format(" at {} bytes {}{}", at->bytes, info(at->dtype).name,
                         at->in_place ? ", in place" : "");
  }
  print(fmt::format("# left out: {}: {}\n", where, why));
  append(left_out_line({where, collective, why}));
}

bool sum_over_ranks(Communicator& communicator, uint64_t& value, Diagnostics& diagnostics) {
  std::vector<std::vector<uint64_t>> ranks;
  if (!gather<uint64_t>(communicator, {value}, ranks, diagnostics)) return false;
  value = 0;
  for (const std::vector<uint64_t>& rank : ranks) value += rank.front();
  return true;
}

bool slowest_of_ranks(Communicator& communicator, std::vector<double>& times,
                      Diagnostics& diagnostics) {
  std::vector<std::vector<double>> ranks;
  if (!gather(communicator, times, ranks, diagnostics)) return false;
  times = slowest(ranks);
  return true;
}

}  // namespace mscclc::bench
