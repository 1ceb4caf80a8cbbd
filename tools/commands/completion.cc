// mscclc completion: prints a completion script for bash or zsh, made from the command line's own
// declarations, so that it cannot fall behind them.
//
//   source <(mscclc completion bash)
#include <fmt/format.h>

#include <CLI/App.hpp>

#include "tools/io/command_line.h"
#include "tools/io/files.h"

namespace mscclc {
namespace {

constexpr const char* kCompletionExamples = R"(  source <(mscclc completion bash)
  mscclc completion zsh > ~/.zfunc/_mscclc)";

using OptionList = std::vector<const CLI::Option*>;

bool is_flag(const CLI::Option& option) { return option.get_items_expected_max() == 0; }

OptionList options_of(const CLI::App& app, bool positional) {
  OptionList list;
  for (const CLI::Option* o : app.get_options()) {
    if (o->get_positional() == positional) list.push_back(o);
  }
  return list;
}

std::vector<std::string> spellings(const CLI::Option& option) {
  std::vector<std::string> names;
  for (const std::string& s : option.get_snames()) names.push_back("-" + s);
  for (const std::string& l : option.get_lnames()) names.push_back("--" + l);
  return names;
}

const std::vector<std::string>* words_of(const CommandLine& line, const CLI::Option& option) {
  const auto at = line.words.find(&option);
  return at == line.words.end() ? nullptr : &at->second;
}

// -- bash ------------------------------------------------------------------------------------

// The case branch that completes the value of one option: "    'compile --emit') words='…' ;;".
std::string bash_value(const CommandLine& line, const CLI::App& app, const CLI::Option& option) {
  std::string pattern;
  for (const std::string& s : spellings(option)) {
    pattern += fmt::format("{}'{} {}'", pattern.empty() ? "" : "|", app.get_name(), s);
  }
  if (const auto* words = words_of(line, option)) {
    return fmt::format("    {}) words='{}' ;;\n", pattern, fmt::join(*words, " "));
  }
  const bool text = line.free_text.count(&option) > 0;
  return fmt::format("    {}) {} ;;\n", pattern, text ? "return" : "files=1");
}

std::string bash_command(const CommandLine& line, const CLI::App& app) {
  std::string options;
  for (const CLI::Option* o : options_of(app, false)) {
    for (const std::string& s : spellings(*o)) options += (options.empty() ? "" : " ") + s;
  }
  std::string arguments = "files=1";
  for (const CLI::Option* o : options_of(app, true)) {
    if (const auto* words = words_of(line, *o)) {
      arguments = fmt::format("words='{}'", fmt::join(*words, " "));
    }
  }
  if (options_of(app, true).empty()) arguments = ":";
  return fmt::format("    {}) options='{}'; {} ;;\n", app.get_name(), options, arguments);
}

constexpr const char* kBashHead = R"(# bash completion for mscclc; made by 'mscclc completion bash'
_mscclc() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]}
  local command=${COMP_WORDS[1]} options='' words='' files=''
  COMPREPLY=()
  # bash cuts --emit=ir into three words
  if [[ $current == '=' ]]; then current=''
  elif [[ $previous == '=' ]]; then previous=${COMP_WORDS[COMP_CWORD-2]}
  fi
  if ((COMP_CWORD == 1)); then
    mapfile -t COMPREPLY < <(compgen -W 'COMMANDS' -- "$current")
    return
  fi
  case "$command $previous" in
)";

constexpr const char* kBashMiddle = R"(    *) case "$command" in
)";

constexpr const char* kBashTail = R"(    esac ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [[ -n $words ]]; then
    # a list may have several, separated by commas
    local before=''
    if [[ $current == *,* ]]; then before=${current%,*},; fi
    mapfile -t COMPREPLY < <(compgen -P "$before" -W "$words" -- "${current##*,}")
  elif [[ -n $files ]]; then
    compopt -o default 2>/dev/null
  fi
}
complete -F _mscclc mscclc
)";

std::string bash_script(const CommandLine& line) {
  std::string names, values, commands;
  for (const Command& c : line.commands) {
    names += c.app->get_name() + " ";
    for (const CLI::Option* o : options_of(*c.app, false)) {
      if (!is_flag(*o)) values += bash_value(line, *c.app, *o);
    }
    commands += "    " + bash_command(line, *c.app);
  }
  names += "--help --version";
  std::string head = kBashHead;
  head.replace(head.find("COMMANDS"), 8, names);
  return head + values + kBashMiddle + commands + kBashTail;
}

// -- zsh -------------------------------------------------------------------------------------

// Quotes what is special inside an _arguments specification in single quotes.
std::string zsh_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
      continue;
    }
    if (c == '[' || c == ']' || c == ':' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string zsh_action(const CommandLine& line, const CLI::Option& option) {
  if (const auto* words = words_of(line, option)) {
    const std::string type = zsh_text(type_of(option)),
                      all = fmt::format("{}", fmt::join(*words, " "));
    const bool list = option.get_delimiter() != '\0';
    return list ? type + ":_values -s , word " + all : type + ":(" + all + ")";
  }
  const bool text = line.free_text.count(&option) > 0;
  return fmt::format("{}:{}", zsh_text(type_of(option)), text ? " " : "_files");
}

std::string zsh_option(const CommandLine& line, const CLI::Option& option) {
  std::string text;
  for (const std::string& s : spellings(option)) {
    const bool wide = s.starts_with("--");
    const std::string repeat = option.get_items_expected_max() > 1 ? "*" : "";
    const std::string value = is_flag(option) ? "" : ":" + zsh_action(line, option);
    text += fmt::format("        '{}{}{}[{}]{}' \\\n", repeat, s,
                        is_flag(option) ? "" : (wide ? "=" : "+"),
                        zsh_text(option.get_description()), value);
  }
  return text;
}

std::string zsh_command(const CommandLine& line, const CLI::App& app) {
  std::string text = fmt::format("    {})\n      _arguments \\\n", app.get_name());
  for (const CLI::Option* o : options_of(app, false)) text += zsh_option(line, *o);
  std::string arguments;
  for (const CLI::Option* o : options_of(app, true)) {
    const std::string many = o->get_items_expected_max() > 1 ? "*" : "1";
    arguments += fmt::format("        '{}:{}' \\\n", many, zsh_action(line, *o));
  }
  text += arguments;
  return text + "        && return 0 ;;\n";
}

std::string zsh_script(const CommandLine& line) {
  std::string names, commands;
  for (const Command& c : line.commands) {
    names += fmt::format("      '{}:{}'\n", c.app->get_name(), zsh_text(c.app->get_description()));
    commands += zsh_command(line, *c.app);
  }
  return "#compdef mscclc\n# zsh completion for mscclc; made by 'mscclc completion zsh'\n"
         "_mscclc() {\n"
         "  if ((CURRENT == 2)); then\n"
         "    local -a commands=(\n" +
         names +
         "    )\n"
         "    _describe command commands\n"
         "    _arguments '--help[show this help]' '--version[show the version]'\n"
         "    return\n"
         "  fi\n"
         "  local command=$words[2]\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $command in\n" +
         commands +
         "  esac\n"
         "}\n"
         "# autoloaded by name, or sourced\n"
         "if [[ $funcstack[1] == _mscclc ]]; then _mscclc \"$@\"; else compdef _mscclc mscclc; "
         "fi\n";
}

void completion_options(CommandLine& line, CLI::App& app, std::string& shell) {
  const std::vector<std::string> shells = {"bash", "zsh"};
  line.takes(app.add_option("SHELL", shell, "bash or zsh")
                 ->type_name("SHELL")
                 ->required()
                 ->check(CLI::IsMember(shells)),
             shells);
}

}  // namespace

void add_completion(CommandLine& line) {
  line.add("completion", "print a completion script for bash or zsh", kCompletionExamples,
           completion_options, [&line](const std::string& shell) {
             put(shell == "bash" ? bash_script(line) : zsh_script(line));
             return kFine;
           });
}

}  // namespace mscclc
