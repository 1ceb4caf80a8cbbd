// mscclc-bench: times plans and other libraries on this machine's GPUs, in one run, with
// nccl-tests' options and table. --help has examples, docs/design/bench.md the rest.
//
//   mscclc-bench -g 4 -b 1K -e 16M --graph --contender nccl plans/allreduce_1shot.mscl plan.json
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <new>

#include "ir/diagnostics/first_message.h"
#include "tools/bench/contenders/torch.h"
#include "tools/bench/ranks/ranks.h"
#include "tools/bench/report/report.h"
#include "tools/bench/results/record.h"
#include "tools/bench/session.h"
#include "tools/bench/support/options.h"
#include "tools/io/files.h"

namespace mscclc::bench {
namespace {

constexpr int kLeftOut = 1, kUsage = 2;

// All are compared without NVLink's multicast unless the caller wants otherwise.
void turn_multicast_off() {
  setenv("NCCL_NVLS_ENABLE", "0", 0);
  setenv("TORCH_SYMM_MEM_DISABLE_MULTICAST", "1", 0);
  setenv("NVSHMEM_DISABLE_NVLS", "1", 0);
}

int failed(const std::string& why) {
  put_error("mscclc-bench: " + why + "\n");
  return kUsage;
}

mscclc::Result<void> read(const std::string& path, Record& record) {
  const auto text = read_input(path);
  if (!text) return text.error();
  Diagnostics diagnostics;
  if (read_record(*text, path, record, diagnostics)) return {};
  return Error{first_message(diagnostics)};
}

int end(const Record& record, const Options& options) {
  std::string text;
  const bool good = report(record, options, text);
  put(text);
  return good ? 0 : kLeftOut;
}

int from_file(const Options& options) {
  Record record;
  const auto done = read(options.from_json, record);
  if (!done) return failed(done.error().text());
  put(tables_text(record, options.best));
  return end(record, options);
}

/// The file that results go to: the user's, or one that goes away.
class RecordFile {
 public:
  explicit RecordFile(const std::string& wanted) : path_(wanted), keep_(!wanted.empty()) {
    if (!keep_) path_ = "/tmp/mscclc-bench.XXXXXX";
    fd_ = keep_ ? open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644)
                : mkostemp(path_.data(), O_APPEND);
  }
  ~RecordFile() {
    if (fd_ < 0) return;
    close(fd_);
    if (!keep_) unlink(path_.c_str());
  }
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  int fd() const { return fd_; }
  const std::string& path() const { return path_; }
  bool append(const std::string& line) const {
    return write(fd_, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  }

 private:
  std::string path_;
  const bool keep_;
  int fd_ = -1;
};

/// Without plans on the command line: those that the library picks for what is measured.
mscclc::Result<void> add_library(const Options& options, PlanSource& plans) {
  if (!options.plans.empty() || options.no_library) return {};
  Diagnostics diagnostics;
  const auto library = open_library(options.library, diagnostics);
  if (!library) return Error{render_text(diagnostics, Sources(), 1)};
  plans.add(*library, {options.collectives, options.sizes, options.dtypes});
  return {};
}

Record joined(Record first, const Record& then) {
  if (!then.machine.empty()) first.machine = then.machine;
  first.results.insert(first.results.end(), then.results.begin(), then.results.end());
  first.left_out.insert(first.left_out.end(), then.left_out.begin(), then.left_out.end());
  first.start_up.insert(first.start_up.end(), then.start_up.begin(), then.start_up.end());
  return first;
}

/// What processes share.
struct Shared {
  SpinBarrier barrier;
  Watch watch;
};

int measure(const Options& options) {
  turn_multicast_off();
  const uint32_t each = options.ranks_per_node;
  PlanSource plans(options.gpus, options.root, each == 0 ? 1 : options.gpus / each);
  for (const std::string& argument : options.plans) plans.add(argument);
  if (const auto added = add_library(options, plans); !added) return failed(added.error().text());
  Record before;
  for (const std::string& path : options.recorded) {
    if (const auto done = read(path, before); !done) return failed(done.error().text());
  }
  // What is there already is lost from here on.
  const RecordFile file(options.json);
  if (file.fd() < 0) return failed(fmt::format("cannot write '{}'", file.path()));
  for (const LeftOut& l : plans.left_out()) {
    put_error(fmt::format("{}# left out: {}\n", l.why, l.who));
    if (!file.append(left_out_line(l))) return failed("cannot write the results");
  }
  if (options.has_contender("torch")) before = joined(run_torch(options), before);
  for (const LeftOut& l : before.left_out) {
    put(fmt::format("# left out: {}: {}\n", l.who, l.why));
    if (!file.append(left_out_line(l))) return failed("cannot write the results");
  }
  void* memory = shared_memory(sizeof(Shared));
  if (memory == nullptr) return failed("cannot share memory between ranks");
  auto& [barrier, watch] = *new (memory) Shared{SpinBarrier(options.gpus), {}};
  const BenchRun run{options, plans, before, barrier, watch, file.fd()};
  const std::chrono::seconds patience(options.timeout);
  const int code = run_ranks(
      options.gpus, watch, patience,
      [&](std::unique_ptr<Bootstrap> bootstrap) { return run_session(run, std::move(bootstrap)); });
  Record record;
  if (const auto done = read(file.path(), record); !done) return failed(done.error().text());
  const int ended = end(record, options);
  return code != 0 ? code : ended;
}

int run(int argc, char** argv) {
  const auto line = parse_options({argv + 1, argv + argc});
  if (!line) return failed(line.error().text());
  if (!line->help.empty()) {
    put(line->help);
    return 0;
  }
  return line->options.from_json.empty() ? measure(line->options) : from_file(line->options);
}

}  // namespace
}  // namespace mscclc::bench

int main(int argc, char** argv) { return mscclc::bench::run(argc, argv); }
