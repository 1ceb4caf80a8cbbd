// mscclc library --kernels: makes compiled kernels of the plans that were written, several at
// a time. Plans that cannot be are left to the interpreter, and counted.
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "executor/compiled/emit.h"
#include "executor/compiled/name.h"
#include "plans/format/library_table.h"
#include "plans/format/plan_json.h"
#include "runtime/api/gpu.h"
#include "runtime/support/process/quiet_thread.h"
#include "tools/commands/programs/kernels.h"
#include "tools/io/files.h"
#include "tools/io/input.h"

namespace mscclc {
namespace {

/// Compiles the plans of a folder.
class KernelCompiler {
 public:
  KernelCompiler(std::string folder, std::string architecture, const CubinCompiler& compiler)
      : folder_(std::move(folder)), architecture_(std::move(architecture)), compiler_(compiler) {}

  int run() {
    if (const auto found = find_plans(); !found) return Input::usage(found.error());
    const auto begin = Clock::now();
    std::vector<std::thread> threads;
    const unsigned most = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 1; i < std::min<size_t>(most, plans_.size()); ++i) {
      std::thread thread = quiet_thread("mscclc-nvcc", [this] { work(); });
      if (thread.joinable()) threads.push_back(std::move(thread));
    }
    work();
    for (std::thread& thread : threads) thread.join();
    if (!made_) return Input::usage(made_.error());
    put(fmt::format(
        "{} files of kernels for {}, {} bytes, made in {:.1f} s; {} plans are left to the "
        "interpreter\n{}\n",
        files_.size(), architecture_, bytes_, seconds_since(begin), plans_.size() - files_.size(),
        loading_text()));
    return kFine;
  }

 private:
  Result<void> find_plans() {
    const std::string path = folder_ + "library.json";
    const auto text = read_regular_file(path);
    if (!text) return text.error();
    Diagnostics diagnostics;
    const auto table = LibraryTable::parse(*text, path, diagnostics);
    if (!table) return Error{render_text(diagnostics, Sources(), 1)};
    std::set<std::string> names;
    for (const LibraryRow& row : table->rows()) names.insert(row.choice.plan);
    plans_.assign(names.begin(), names.end());
    return {};
  }

  void work() {
    for (size_t i = next_++; i < plans_.size(); i = next_++) {
      auto compiled = compile(folder_ + plans_[i]);
      if (compiled) continue;
      const std::lock_guard lock(mutex_);
      if (made_) made_ = std::move(compiled);
      next_ = plans_.size();
    }
  }

  /// It is no error that a plan is left to the interpreter.
  Result<void> compile(const std::string& path) {
    const auto text = read_regular_file(path);
    if (!text) return text.error();
    Diagnostics diagnostics;
    const auto plan = read_plan(*text, path, diagnostics);
    if (!plan) return Error{render_text(diagnostics, Sources(), 1)};
    const auto source = kernel_source(*plan, usual_kernel_dtypes(), diagnostics);
    if (!source) return {};
    const std::string output = kernel_file(path, architecture_);
    const auto cubin = compiler_.compile(*source, architecture_);
    if (!cubin) return cubin.error();
    if (auto written = write_file(output, *cubin); !written) return written;
    const std::lock_guard lock(mutex_);
    bytes_ += cubin->size();
    files_.push_back(output);
    return {};
  }

  /// How long a job takes to load the files, where this machine has a GPU for them.
  std::string loading_text() const {
    Diagnostics unheard;
    const auto device = cuda::open_gpu(0, unheard);
    if (device == nullptr || device->architecture() != architecture_ || files_.empty()) {
      return fmt::format("loading them was not timed: there is no GPU of {} here", architecture_);
    }
    double all = 0, most = 0;
    for (const std::string& file : files_) {
      const auto refused = [&](const Error& error) {
        return fmt::format("{} does not take '{}': {}", device->name(), file, error.text());
      };
      const auto image = read_regular_file(file);
      if (!image) return refused(image.error());
      const auto begin = Clock::now();
      const auto loaded =
          device->load_kernels({reinterpret_cast<const uint8_t*>(image->data()), image->size()});
      if (!loaded) return refused(loaded.error());
      const double took = seconds_since(begin);
      all += took;
      most = std::max(most, took);
    }
    return fmt::format("{} loads a file in {:.2f} ms, {:.2f} at most", device->name(),
                       1e3 * all / static_cast<double>(files_.size()), 1e3 * most);
  }

  using Clock = std::chrono::steady_clock;
  static double seconds_since(Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  }

  const std::string folder_, architecture_;
  const CubinCompiler& compiler_;
  std::vector<std::string> plans_;
  std::atomic<size_t> next_ = 0;
  std::mutex mutex_;
  uint64_t bytes_ = 0;
  std::vector<std::string> files_;
  Result<void> made_;  ///< the first error of all threads
};

}  // namespace

void add_library_with_kernels(CommandLine& line) {
  add_library(line);
  Command& command = line.commands.back();
  auto architecture = std::make_shared<std::string>();
  line.takes_text(command.app
                      ->add_option("--kernels", *architecture,
                                   "also make compiled kernels of the plans for this GPU "
                                   "architecture, with nvcc or NVRTC; the interpreter runs them "
                                   "without")
                      ->type_name("ARCH")
                      ->check(CLI::Validator(check_architecture, "")));
  command.examples += "  mscclc library --ranks 2,4 --kernels sm_90 -o /opt/plans\n";
  command.run = [write = command.run, app = command.app, architecture] {
    if (architecture->empty()) return write();
    if (app->count("--list") > 0)
      return Input::usage("--kernels compiles plans, and --list writes none");
    if (app->count("--programs") > 0) {
      return Input::usage("--kernels compiles plans, and --programs writes none: give one of them");
    }
    const auto compiler = find_cubin_compiler();
    if (!compiler) return Input::usage(compiler.error());
    if (const int code = write(); code != kFine) return code;
    std::string folder = app->get_option("--output")->as<std::string>();
    if (!folder.ends_with('/')) folder += '/';
    return KernelCompiler(folder, *architecture, **compiler).run();
  };
}

}  // namespace mscclc
