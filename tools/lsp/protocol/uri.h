// Names of documents: URIs, and paths of files.
#pragma once

#include <string>
#include <string_view>

namespace mscclc::lsp {

/// The path of a "file:" URI; of another URI, or one that is wrong, the URI itself.
std::string path_of_uri(std::string_view uri);
/// The URI of a file's absolute path.
std::string uri_of_path(std::string_view path);

}  // namespace mscclc::lsp
