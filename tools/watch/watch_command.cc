// mscclc watch: compiles, proves and runs a program whenever its files change, until Ctrl-C.
#include <fmt/format.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/App.hpp>
#include <atomic>
#include <memory>
#include <thread>

#include "ir/diagnostics/diagnostic.h"
#include "runtime/support/process/quiet_thread.h"
#include "tools/io/command_line.h"
#include "tools/io/files.h"
#include "tools/io/sizes.h"
#include "tools/watch/file_changes.h"
#include "tools/watch/round.h"

namespace mscclc {
namespace {

constexpr const char* kWatchExamples = R"(  mscclc watch ring.mscl
  mscclc watch ring.mscl -D R=16 --bytes 1M)";

constexpr int kLookEveryMs = 10;
constexpr int kMissingAfterLooks = 100;  // an editor that replaces a file takes less

using Asked = std::shared_ptr<std::atomic<bool>>;

/// Gets true when Ctrl-C asks for the end; the second one ends the process at once. Signals come to
/// a thread that waits for them, as their handlers take no argument that could name what to set.
/// REQUIRES: no other thread runs. nullptr: reported.
Asked end_on_signals(Diagnostics& diagnostics) {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int number : {SIGINT, SIGTERM}) {
    ::signal(number, SIG_DFL);  // in a shell's background it may be ignored
    sigaddset(&ends, number);
  }
  const auto asked = std::make_shared<std::atomic<bool>>(false);
  ::pthread_sigmask(SIG_BLOCK, &ends, nullptr);
  std::thread waits = quiet_thread("mscclc-signals", [ends, asked] {
    int number = 0;
    ::sigwait(&ends, &number);
    asked->store(true);
    ::pthread_sigmask(SIG_UNBLOCK, &ends, nullptr);
    for (;;) ::pause();
  });
  if (!has_started(waits, "signals", diagnostics)) return nullptr;
  waits.detach();
  return asked;
}

/// What a round has used the next one needs again, and a page that comes back costs as much as
/// proving a few ops.
void keep_memory() {
  constexpr int kMaxKept = 1 << 30, kLargestOnHeap = 32 << 20;  // the latter: glibc's limit
  (void)::mallopt(M_TRIM_THRESHOLD, kMaxKept);
  (void)::mallopt(M_TOP_PAD, 16 << 20);
  (void)::mallopt(M_MMAP_THRESHOLD, kLargestOnHeap);
}

void print_line(const std::string& text) {
  put(text + "\n");
  (void)std::fflush(stdout);
}

struct WatchOptions {
  InputOptions input;
  std::string bytes = "64K";
};

/// Waits for a change. False: it is time to end.
bool wait_for_change(FileChanges& changes, const std::atomic<bool>& asked_to_end) {
  for (int looks = 0; !asked_to_end; ++looks) {
    (void)::poll(nullptr, 0, kLookEveryMs);
    if (changes.settled()) return true;
    if (changes.missing().empty()) looks = 0;
    if (looks != kMissingAfterLooks) continue;
    if (const auto there = read_regular_file(changes.missing()); !there) {
      put_error(there.error().text() + "; waiting for it\n");
    }
  }
  return false;
}

int run_watch(const WatchOptions& options) {
  const auto sizes = parse_sizes(options.bytes);
  if (!sizes) return Input::usage("--bytes: " + sizes.error().text());
  if (sizes->size() != 1) return Input::usage("--bytes: one size, as in 64K");
  const std::string& file = options.input.file;
  if (file == "-") return Input::usage("standard input cannot be watched; name a file");
  const auto text = read_regular_file(file);
  if (!text) return Input::usage(text.error());
  Diagnostics diagnostics;
  const Asked asked_to_end = end_on_signals(diagnostics);
  if (asked_to_end == nullptr) return Input::usage(message_of(diagnostics));
  keep_memory();
  FiberPool stacks;
  FileChanges changes;
  changes.watch({{file, *text}});
  do {
    const Round round = run_round(options.input, sizes->front(), stacks);
    print_line(fmt::format("{}: {}", file, round.verdict));
    changes.watch(round.files);
  } while (wait_for_change(changes, *asked_to_end));
  return flush_output() ? kFine : kUsage;
}

void watch_options(CommandLine& line, CLI::App& app, WatchOptions& options) {
  app.add_option("FILE", options.input.file, "a program, IR text or a plan; Ctrl-C ends")
      ->type_name("FILE")
      ->required();
  add_define_option(line, app, options.input);
  line.takes_text(app.add_option("--bytes", options.bytes,
                                 "size of the message that is run on the simulator (default: 64K)")
                      ->type_name("SIZE"));
  add_diagnostics_option(line, app, options.input.diagnostics);
}

}  // namespace

void add_watch(CommandLine& line) {
  line.add("watch", "compile, prove and run a program at every change of its files", kWatchExamples,
           watch_options, run_watch);
}

}  // namespace mscclc
