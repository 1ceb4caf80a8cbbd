// Links of documents: whether the page, the file and the heading that a link names are there.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace mscclc::structure {

/// The names by which links reach the headings of a page in Markdown, as GitHub makes them:
/// `## How it's done` is `how-its-done`. Of equal ones the second is `how-its-done-1`.
std::vector<std::string> heading_names(const std::string& page);

/// Says of each relative link of `pages` (text by path) that leads nowhere, with its line:
/// "docs/a.md:7: b.md#end: no such heading". `exists` is asked of files that are no pages. Blocks
/// and words of code have no links.
std::vector<std::string> broken_links(const std::map<std::string, std::string>& pages,
                                      const std::function<bool(const std::string&)>& exists);

}  // namespace mscclc::structure
