// What MSCCLC_DEBUG shows, and what it does not.
#include "runtime/support/observe/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/support/observe/file_name.h"
#include "tests/helpers/runtime/log_file.h"

namespace mscclc {
namespace {

using testing::LogFile;

void say_all() {
  log(LogLevel::warn, LogArea::call, 1, "a warning");
  log(LogLevel::info, LogArea::init, 1, "an init");
  log(LogLevel::info, LogArea::call, 1, "a call");
  log(LogLevel::trace, LogArea::call, std::nullopt, "a trace");
}

TEST_CASE("nothing is said unless it is asked for") {
  const LogFile log(Environment::Values{});
  REQUIRE(log.started());
  say_all();
  CHECK(log.text().empty());
  CHECK(::access(log.name().c_str(), F_OK) != 0);
}

/// Lines go to it as long as this lives.
class Sink {
 public:
  explicit Sink(LogSink sink) { set(std::move(sink)); }
  ~Sink() { set({}); }
  static void set(LogSink sink) {
    Diagnostics diagnostics;
    if (!set_log_sink(std::move(sink), diagnostics)) std::abort();
  }
};

const Environment::Values kCalls{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "CALL"}};

void say(const std::string& text) { log(LogLevel::info, LogArea::call, 1, text); }

TEST_CASE("lines go to a sink instead of the file") {
  const LogFile log(kCalls);
  REQUIRE(log.started());
  std::vector<std::string> lines;
  {
    const Sink sink([&](const std::string& line) { lines.push_back(line); });
    say_all();
  }
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].ends_with("[1] mscclc WARN CALL a warning"));
  CHECK(lines[1].ends_with("[1] mscclc INFO CALL a call"));
  CHECK(log.text().empty());
  say_all();
  CHECK(!log.text().empty());
}

TEST_CASE("a sink may wait for what its lines' thread holds") {
  const LogFile log(kCalls);
  std::mutex held;
  std::vector<std::string> lines;
  const auto wait = [&](const std::string& line) {
    const std::lock_guard lock(held);
    lines.push_back(line);
  };
  {
    const Sink sink(wait);
    const std::lock_guard lock(held);
    for (int i = 0; i < 3; ++i) say(std::to_string(i));
  }
  REQUIRE(lines.size() == 3);
  for (int i = 0; i < 3; ++i) CHECK(lines[i].ends_with("CALL " + std::to_string(i)));
}

TEST_CASE("a sink may log, and take itself away") {
  const LogFile log(kCalls);
  struct Seen {
    std::vector<std::string> lines;
    std::promise<void> both_said, gone;
  };
  const auto seen = std::make_shared<Seen>();  // its thread may outlive this
  Sink::set([seen](const std::string& line) {
    seen->lines.push_back(line);
    if (seen->lines.size() == 1) {
      seen->both_said.get_future().wait();
      say("three");
      return;
    }
    Sink::set({});
    seen->gone.set_value();
  });
  say("one");
  say("two");
  seen->both_said.set_value();
  seen->gone.get_future().wait();
  REQUIRE(seen->lines.size() == 2);
  CHECK(seen->lines[0].ends_with("CALL one"));
  CHECK(seen->lines[1].ends_with("CALL two"));
  // What it has not had is not lost.
  CHECK_THAT(log.text(), Catch::EndsWith("CALL three\n"));
}

TEST_CASE("what a sink holds may log when it goes") {
  const LogFile log(kCalls);
  const auto end = [](void*) { say("the end of a sink"); };
  Sink::set([held = std::shared_ptr<void>(nullptr, end)](const std::string&) {});
  Sink::set({});
  CHECK_THAT(log.text(), Catch::EndsWith("CALL the end of a sink\n"));
}

TEST_CASE("a sink that takes too long learns how many lines are lost") {
  const LogFile log(kCalls);
  std::promise<void> inside, all_said;
  std::vector<std::string> lines;
  {
    const Sink sink([&](const std::string& line) {
      if (lines.empty()) {
        inside.set_value();
        all_said.get_future().wait();
      }
      lines.push_back(line);
    });
    say("first");
    inside.get_future().wait();
    for (size_t i = 0; i < Delivery::kMaxLines + 7; ++i) say("more");
    all_said.set_value();
  }
  REQUIRE(lines.size() == 1 + Delivery::kMaxLines + 1);
  CHECK(lines.back() == "mscclc: 7 lines of the log are lost: its callback takes too long");
}

TEST_CASE("levels and subsystems") {
  struct Case {
    const char *level, *areas, *said;
  };
  for (const Case& c :
       {Case{"WARN", "ALL", "w"}, Case{"INFO", "", "wi"}, Case{"INFO", "CALL", "wc"},
        Case{"INFO", "^CALL", "wi"}, Case{"INFO", "LOAD,CALL,INIT", "wic"},
        Case{"Info", "^call", "wi"}, Case{"TRACE", "ALL", "wict"}, Case{"TRACE", "INIT", "wi"}}) {
    INFO(c.level << " " << c.areas);
    const LogFile log(
        Environment::Values{{"MSCCLC_DEBUG", c.level}, {"MSCCLC_DEBUG_SUBSYS", c.areas}});
    REQUIRE(log.started());
    say_all();
    const std::string text = log.text(), said = c.said;
    const auto has = [&](const char* what) { return text.find(what) != std::string::npos; };
    CHECK(has(" mscclc WARN CALL a warning\n") == (said.find('w') != std::string::npos));
    CHECK(has(" [1] mscclc INFO INIT an init\n") == (said.find('i') != std::string::npos));
    CHECK(has(" mscclc INFO CALL a call\n") == (said.find('c') != std::string::npos));
    CHECK(has(" [-] mscclc TRACE CALL a trace\n") == (said.find('t') != std::string::npos));
  }
}

TEST_CASE("variables are logged, secrets are not") {
  const LogFile log(Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_SECRET", "xyzzy"}});
  CHECK_THAT(log.text(), Catch::Contains("INFO ENV MSCCLC_DEBUG is 'INFO'\n"));
  CHECK_THAT(log.text(), Catch::Contains("INFO ENV MSCCLC_SECRET is set\n"));
  CHECK_THAT(log.text(), !Catch::Contains("xyzzy"));
}

TEST_CASE("wrong values are errors") {
  CHECK(LogFile(Environment::Values{{"MSCCLC_DEBUG", "LOUD"}}).error() ==
        "MSCCLC_DEBUG is 'LOUD'; allowed is WARN, INFO or TRACE");
  CHECK(
      LogFile(Environment::Values{{"MSCCLC_DEBUG", "INFO"}, {"MSCCLC_DEBUG_SUBSYS", "CALL,"}})
          .error() ==
      "MSCCLC_DEBUG_SUBSYS is 'CALL,'; allowed is ALL or some of INIT, BOOTSTRAP, ENV, LOAD, REG, "
      "BIND, CALL, PROXY, SELECT, separated by commas; after a ^ all but these");
}

TEST_CASE("the name of the log's file is checked where nothing is logged, too") {
  Diagnostics diagnostics;
  reset_log();
  CHECK(!start_log(Environment(Environment::Values{{"MSCCLC_DEBUG_FILE", "log-%x"}}), diagnostics));
  REQUIRE(diagnostics.all().size() == 1);
  CHECK(diagnostics.all()[0].message ==
        "MSCCLC_DEBUG_FILE is 'log-%x'; allowed is a file's name, with %h, %p and %%");
}

TEST_CASE("a line of the log is one line, and commands no terminal") {
  const LogFile started(Environment::Values{{"MSCCLC_DEBUG", "WARN"}});
  log(LogLevel::warn, LogArea::load, 1, "'a\nb\x1b[31m\u202e'");
  CHECK_THAT(started.text(), Catch::EndsWith(" WARN LOAD 'a\\x0ab\\x1b[31m\\xe2\\x80\\xae'\n"));
}

/// A named pipe, until the end of a case.
struct Pipe {
  explicit Pipe(const char* what) {
    const char* folder = std::getenv("TEST_TMPDIR");
    name = (folder == nullptr ? std::string("/tmp") : std::string(folder)) + "/" + what + "-" +
           std::to_string(::getpid());
    REQUIRE(::mkfifo(name.c_str(), 0600) == 0);
  }
  ~Pipe() { ::unlink(name.c_str()); }
  std::string name;
};

/// Starts a log that goes there. "": it has begun.
std::string start(const std::string& name) {
  Diagnostics diagnostics;
  const Environment environment({{"MSCCLC_DEBUG", "WARN"}, {"MSCCLC_DEBUG_FILE", name}});
  return start_log(environment, diagnostics) ? "" : diagnostics.all().front().message;
}

/// What goes to standard error while it lives.
class StandardError {
 public:
  StandardError() : before_(::dup(STDERR_FILENO)) { ::dup2(::fileno(file_), STDERR_FILENO); }
  ~StandardError() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    std::fclose(file_);
  }
  std::string text() {
    std::string text(4096, '\0');
    const ssize_t n = ::pread(::fileno(file_), text.data(), text.size(), 0);
    text.resize(n > 0 ? static_cast<size_t>(n) : 0);
    return text;
  }

 private:
  std::FILE* const file_ = std::tmpfile();
  const int before_;
};

TEST_CASE("a log does not wait for the reader of a pipe") {
  const Pipe pipe("unread");
  CHECK(start(pipe.name) ==
        "cannot write the log '" + pipe.name + "': it is a pipe with no reader");
  const int reader = ::open(pipe.name.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  REQUIRE(reader >= 0);
  REQUIRE(start(pipe.name) == "");
  StandardError said;
  const std::string line(1000, 'x');
  for (int i = 0; i < 200; ++i) log(LogLevel::warn, LogArea::call, 1, line);  // more than it holds
  char begin[16] = {};
  CHECK(::read(reader, begin, sizeof begin) == sizeof begin);
  ::close(reader);
  log(LogLevel::warn, LogArea::call, 1, line);  // no SIGPIPE
  reset_log();
  CHECK(said.text() == "mscclc: lines of the log (MSCCLC_DEBUG_FILE) are lost: it has no reader\n");
}

TEST_CASE("a log that cannot be written says so once") {
  REQUIRE(start("/dev/full") == "");
  StandardError said;
  for (int i = 0; i < 3; ++i) log(LogLevel::warn, LogArea::call, 1, "a line");
  reset_log();
  CHECK(said.text() ==
        "mscclc: lines of the log (MSCCLC_DEBUG_FILE) are lost: No space left on device (28)\n");
}

TEST_CASE("what is said in any case goes to the log's file, or says why not") {
  {
    const LogFile log(Environment::Values{});
    log_always(LogArea::env, 1, "one");
    log_always(LogArea::env, 1, "two");
    CHECK_THAT(log.text(), Catch::Contains(" WARN ENV one\n") && Catch::EndsWith(" ENV two\n"));
  }
  Diagnostics none;
  const Environment::Values nowhere{{"MSCCLC_DEBUG_FILE", "/dev/null/a"}};
  REQUIRE(start_log(Environment(nowhere), none));
  StandardError said;
  for (int i = 0; i < 2; ++i) log_always(LogArea::env, 1, "a line");
  reset_log();
  const std::string text = said.text();
  CHECK_THAT(text, Catch::StartsWith("mscclc: cannot write the log '/dev/null/a': ") &&
                       Catch::EndsWith(" ENV a line\n"));
  CHECK(std::count(text.begin(), text.end(), '\n') == 3);
}

TEST_CASE("names of files") {
  CHECK(expand_file_name("a-%p", {}) == "a-" + std::to_string(::getpid()));
  CHECK(expand_file_name("%h%%", {}) == host_name() + "%");
  CHECK(expand_file_name("%r", 7) == "7");
  CHECK(expand_file_name("%r", {}).empty());
  CHECK(expand_file_name("a%", 7).empty());
  CHECK(expand_file_name("%x", 7).empty());
}

}  // namespace
}  // namespace mscclc
