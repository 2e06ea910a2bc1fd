#include "sim/scenario/megatron_import_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "sim/scenario/megatron_import_shell.h"
#include "sim/scenario/yaml_tree.h"

namespace quadrille::scenario {
namespace {

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// "--num-layers" but not "-1".
bool IsFlag(std::string_view word) {
  return word.size() > 2 && word[0] == '-' && word[1] == '-' && word[2] != '-';
}

std::string FlagName(std::string_view word) {
  std::string name(word.substr(2));
  std::replace(name.begin(), name.end(), '_', '-');
  return name;
}

std::optional<std::int64_t> Whole(std::string_view text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number < 1) return std::nullopt;
  return number;
}

std::vector<MegatronFlag> FlagsOf(const ShellCommand& words, std::size_t first, std::size_t last) {
  std::vector<MegatronFlag> flags;
  for (std::size_t i = first; i < last; ++i) {
    const std::string& text = words[i].text;
    if (!IsFlag(text)) {
      if (!flags.empty()) flags.back().values.push_back(text);
      continue;
    }
    const std::size_t equals = text.find('=');
    flags.push_back({FlagName(std::string_view(text).substr(0, equals)), {}, words[i].position});
    if (equals != std::string::npos) flags.back().values.push_back(text.substr(equals + 1));
  }
  return flags;
}

// A word that holds a whole command (`sh -c "$run"`) becomes its words.
ShellCommand Opened(const ShellCommand& command) {
  ShellCommand opened;
  for (const ShellWord& word : command) {
    const bool nested = word.text.find(".py") != std::string::npos &&
                        word.text.find_first_of(" \t\n") != std::string::npos;
    if (!nested) {
      opened.push_back(word);
      continue;
    }
    const Result<ShellCommand> words = ReadShellWords(word.text, word.position.file);
    if (!words) continue;
    for (const ShellWord& inner : *words) opened.push_back({inner.text, word.position});
  }
  return opened;
}

std::size_t ProgramOf(const ShellCommand& command) {
  const auto program = std::find_if(command.begin(), command.end(), [](const ShellWord& word) {
    return EndsWith(word.text, ".py") && !IsFlag(word.text);
  });
  return static_cast<std::size_t>(program - command.begin());
}

void ReadLauncher(const ShellCommand& command, std::size_t program, MegatronArguments* arguments) {
  for (const MegatronFlag& flag : FlagsOf(command, 0, program)) {
    if (flag.values.empty()) continue;
    if (flag.name == "nproc-per-node") arguments->gpus_per_node = Whole(flag.values.front());
    if (flag.name == "nnodes") arguments->nodes = Whole(flag.values.front());
  }
}

Result<MegatronArguments> FromScript(std::string_view text, const std::string& file) {
  Result<ShellScript> script = ReadShell(text, file);
  if (!script) return tl::unexpected<Diagnostics>(script.error());
  MegatronArguments arguments;
  arguments.passed_over = std::move(script->passed_over);
  for (const ShellCommand& words : script->commands) {
    const ShellCommand command = Opened(words);
    const std::size_t program = ProgramOf(command);
    if (program == command.size()) continue;
    std::vector<MegatronFlag> flags = FlagsOf(command, program + 1, command.size());
    if (flags.size() <= arguments.flags.size()) continue;
    arguments.flags = std::move(flags);
    ReadLauncher(command, program, &arguments);
  }
  if (arguments.flags.empty()) {
    Diagnostics problems = {{{file, 0, 0},
                             "no command that surely runs starts a Python program with flags, such "
                             "as torchrun ... pretrain_gpt.py --num-layers 32"}};
    for (const ShellPassedOver& part : arguments.passed_over) {
      problems.push_back({part.position, part.what + " is passed over"});
    }
    return tl::unexpected<Diagnostics>(std::move(problems));
  }
  return arguments;
}

Result<MegatronArguments> FromFlagList(std::string_view text, const std::string& file) {
  const Result<ShellCommand> words = ReadShellWords(text, file);
  if (!words) return tl::unexpected<Diagnostics>(words.error());
  MegatronArguments arguments;
  arguments.flags = FlagsOf(*words, 0, words->size());
  return arguments;
}

Result<MegatronArguments> FromYaml(std::string_view text, const std::string& file) {
  Diagnostics problems;
  const std::optional<YamlValue> tree = ParseYaml(text, file, &problems);
  if (!problems.empty()) return tl::unexpected<Diagnostics>(std::move(problems));
  const YamlEntry* entry = tree && tree->is_map() ? tree->Find("MODEL_ARGS") : nullptr;
  if (entry == nullptr || !entry->value.is_map()) {
    return Error("no map MODEL_ARGS of flags", {file, 0, 0});
  }
  MegatronArguments arguments;
  for (const YamlEntry& row : entry->value.entries) {
    const std::string name = IsFlag(row.key) ? FlagName(row.key) : FlagName("--" + row.key);
    MegatronFlag flag{name, {}, row.position};
    if (row.value.is_scalar() && row.value.text == "false") continue;  // a switch that is off
    if (row.value.is_scalar() && row.value.text != "true") flag.values = {row.value.text};
    for (const YamlValue& item : row.value.items) flag.values.push_back(item.text);
    arguments.flags.push_back(std::move(flag));
  }
  return arguments;
}

}  // namespace

Result<MegatronArguments> ReadMegatronArguments(std::string_view text, const std::string& file) {
  if (EndsWith(file, ".yaml") || EndsWith(file, ".yml")) return FromYaml(text, file);
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    const std::size_t start = line.find_first_not_of(" \t\r");
    if (start != std::string_view::npos && line[start] != '#') {
      return IsFlag(line.substr(start)) ? FromFlagList(text, file) : FromScript(text, file);
    }
    at = end + 1;
  }
  return Error("the file is empty", {file, 0, 0});
}

bool IsUnevaluated(std::string_view value) {
  return value.find('$') != std::string_view::npos || value.find('`') != std::string_view::npos;
}

}  // namespace quadrille::scenario
