// Reading and writing whole files, "-" being standard input or output. Every failure is a sentence;
// nothing throws.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace mscclc {

/// Reads a file. On failure returns nothing and says why: "cannot read 'x.mscl': No such file or
/// directory".
std::optional<std::string> read_file(const std::string& path, std::string& error);
/// Replaces the contents of a file.
bool write_file(const std::string& path, std::string_view text, std::string& error);
/// Writes to standard output, and error. A failure shows in ferror() when the process ends.
void put(std::string_view text);
void put_error(std::string_view text);
/// Opens what the parent process left closed of descriptors 0 to 2, so that no file of ours gets
/// one of these numbers and then messages written into it.
void protect_standard_streams();

}  // namespace mscclc
