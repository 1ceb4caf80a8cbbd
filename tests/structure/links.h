// Links of documents: whether the page, the file and the heading that a link names are there, and
// the files and members that stand in code.
#pragma once

#include <functional>
#include <map>
#include <set>
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

/// Says of each path (`ir/ops/ops.h`, `ir/ops`) and source (`ops.h`) that stands in code in the
/// text of `pages` and is none of `files`: "docs/a.md:7: ir/ops/opps.h: no such file". A path
/// begins with a folder of `files`.
std::vector<std::string> missing_files(const std::map<std::string, std::string>& pages,
                                       const std::set<std::string>& files);

/// Says of each member (`Type::name`) there that no source names beside its type:
/// "docs/a.md:7: Type::name: no such member".
std::vector<std::string> missing_members(const std::map<std::string, std::string>& pages,
                                         const std::map<std::string, std::string>& sources);

}  // namespace mscclc::structure
