// Reading and writing whole files, "-" being standard input or output. Every failure is a sentence;
// nothing throws.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "ir/support/read_file.h"
#include "ir/support/result.h"

namespace mscclc {

/// Reads a file. An error: "cannot read 'x.mscl': No such file or directory".
Result<std::string> read_input(const std::string& path);
/// The same of what must be a file: a pipe or a device in its place is an error.
Result<std::string> read_regular_file(const std::string& path);
/// Replaces the contents of a file, as FileWriter does.
Result<void> write_file(const std::string& path, std::string_view text);
/// Before long work whose result is to be written: an error, as of write_file(), if the path is a
/// folder or lies in none. What else may go wrong shows when it is written.
Result<void> could_write(const std::string& path);
/// Before work, of what a command writes beside what it prints: an error if the path is "-".
/// `what`: "a timeline".
Result<void> needs_file(const std::string& what, const std::string& path);
/// Do both paths lead to one file that is there, however they are spelled? "-", pipes and devices
/// are no files: writing leaves what is read from them.
bool same_file(const std::string& a, const std::string& b);
/// How long a named pipe that is written may have no reader: as long as one that is read may have
/// no writer (ir/support/read_file.h).
inline constexpr std::chrono::milliseconds kReaderPatience = kWriterPatience;
/// A file that is written piece by piece. Nothing happens to it before finish(), which puts what
/// was written in its place at once: until then, and after a failure, the file is what it was. That
/// cannot be done for pipes and devices, files with several names or another owner, and files in
/// folders that cannot be written; these are written in place. A pipe whose reader is slow is
/// waited for, as cat does. Standard output gets nothing before finish(), and then each byte,
/// unless it is a terminal, which gets what put() would give it.
class FileWriter {
 public:
  explicit FileWriter(std::string path, std::chrono::milliseconds patience = kReaderPatience)
      : path_(std::move(path)), patience_(patience) {}
  /// Removes what has been begun and not finished.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  /// Both are false, and error() says why, once something has failed.
  [[nodiscard]] bool write(std::string_view text);
  [[nodiscard]] bool finish();
  const std::string& error() const { return error_; }

 private:
  static constexpr size_t kHeld = size_t{16} << 20;
  [[nodiscard]] bool begin();
  [[nodiscard]] bool pass_on(std::string_view text);
  void open_beside();
  bool fail();

  const std::string path_;
  const std::chrono::milliseconds patience_;  ///< with a pipe that has no reader
  std::string held_, error_;
  std::string target_;  ///< what `beside_` becomes: the path, or where its links lead
  std::string beside_;  ///< the file that is being written; "" if it is written in place
  int fd_ = -1;
};

/// Writes text for people to standard output, and error: what it quotes commands no terminal
/// (ir/diagnostics/printable.h). A failure shows in ferror() when the process ends.
void put(std::string_view text);
void put_error(std::string_view text);
/// At the end of a process: writes what put() still holds. False: not all of the output could be
/// written; the reason is on standard error.
[[nodiscard]] bool flush_output();
/// From now on a write beyond 'ulimit -f' is an error of its file, not the end of the process.
void survive_large_writes();
/// Opens what the parent process left closed of descriptors 0 to 2, so that no file of ours gets
/// one of these numbers and then messages written into it.
void protect_standard_streams();

}  // namespace mscclc
