#include "tools/bench/contenders/torch.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "ir/diagnostics/first_message.h"
#include "tools/bench/results/record.h"
#include "tools/bench/support/batch.h"

namespace mscclc::bench {
namespace {

constexpr char kScript[] =
#include "tools/bench/contenders/torch_contender.inc"
    ;
constexpr int kSeconds = 180;  // before a script that hangs is ended

/// The script as a file that goes away.
class ScriptFile {
 public:
  ScriptFile() {
    const int fd = mkstemp(path_);
    if (fd < 0) return;
    good_ = write(fd, kScript, sizeof kScript - 1) == static_cast<ssize_t>(sizeof kScript - 1);
    close(fd);
  }
  ~ScriptFile() { unlink(path_); }
  ScriptFile(const ScriptFile&) = delete;
  ScriptFile& operator=(const ScriptFile&) = delete;
  bool good() const { return good_; }
  const char* path() const { return path_; }

 private:
  char path_[32] = "/tmp/mscclc-torch.XXXXXX";
  bool good_ = false;
};

/// Standard output of a shell command; `code` is its exit code.
std::string output_of(const std::string& command, int& code) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    code = 127;
    return text;
  }
  char buffer[4096];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, n);
  const int status = pclose(pipe);
  code = WIFEXITED(status) ? WEXITSTATUS(status) : 127;
  return text;
}

bool has_allreduce(const Options& options) {
  return options.collectives.empty() ||
         std::ranges::find(options.collectives, CollectiveKind::allreduce) !=
             options.collectives.end();
}

Record left_out(const std::string& why) {
  Record record;
  record.left_out.push_back({"torch", "allreduce", why});
  return record;
}

}  // namespace

std::string torch_arguments(const Options& options) {
  std::string work;
  for (const bool graph : {false, true}) {
    if (!(graph ? options.graph : options.eager)) continue;
    for (const uint64_t bytes : options.sizes) {
      const Batch batch = batch_of(options, bytes, graph);
      work += fmt::format(" {}:{}:{}:{}:{}:{}", graph ? "graph" : "eager", bytes, batch.calls,
                          batch.replays, batch.units, batch.unit_calls);
    }
  }
  std::string types;
  for (const Dtype dtype : options.dtypes) {
    if (dtype == Dtype::f32 || dtype == Dtype::bf16) {
      types += fmt::format(" --type {}", info(dtype).name);
    }
  }
  return fmt::format("--gpus {} --repeats {} --warmup {}{}{} --work{}", options.gpus,
                     options.repeats, options.warmup,
                     options.between > 0 ? fmt::format(" --between {}", options.between) : "",
                     types, work);
}

Record run_torch(const Options& options) {
  const bool sums = std::ranges::find(options.ops, ReduceOp::sum) != options.ops.end();
  if (!has_allreduce(options) || !sums || options.offset > 0) return {};
  if (options.ranks_per_gpu > 1) return left_out("its ranks have a GPU each");
  int code = 0;
  output_of("python3 -c 'import torch' 2>/dev/null", code);
  if (code != 0) return left_out("python3 -c 'import torch' does not work");
  const ScriptFile script;
  if (!script.good()) return left_out("cannot write a script in /tmp");
  const std::string text = output_of(fmt::format("timeout -k 5 {} python3 {} {}", kSeconds,
                                                 script.path(), torch_arguments(options)),
                                     code);
  Record record;
  Diagnostics diagnostics;
  if (!read_record(text, "PyTorch's results", record, diagnostics)) {
    return left_out(first_message(diagnostics));
  }
  if (code != 0) {
    record.left_out.push_back(
        {"torch", "allreduce", fmt::format("the script ended with exit code {}", code)});
  }
  return record;
}

}  // namespace mscclc::bench
