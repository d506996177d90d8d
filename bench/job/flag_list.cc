// Each kind of value, to CLI11 and to JSON.
#include "job/flag_list.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>

#include "absl/status/statusor.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "job/flags.h"
#include "tensor/stable_hash.h"
#include "workload/numbers.h"

namespace sluice::bench {
namespace {

template <typename... Ts>
struct Overloaded : Ts... {
  using Ts::operator()...;
};
template <typename... Ts>
Overloaded(Ts...) -> Overloaded<Ts...>;  // clang 14 does not find it by itself

template <typename T>
CLI::Option* WithRange(CLI::Option* option, const FlagMore& more) {
  if (more.min == -kUnbounded && more.max == kUnbounded) return option;
  using Limits = std::numeric_limits<T>;
  return option->check(
      CLI::Range(more.min == -kUnbounded ? Limits::lowest() : static_cast<T>(more.min),
                 more.max == kUnbounded ? Limits::max() : static_cast<T>(more.max)));
}

CLI::Option* AddBytes(CLI::App* app, const Flag& flag, std::function<void(int64_t)> set) {
  const std::string name = absl::StrCat("--", flag.Name());
  return app->add_option_function<std::string>(
      flag.names,
      [name, set = std::move(set)](const std::string& text) {
        const absl::StatusOr<int64_t> bytes =
            text.empty() ? absl::StatusOr<int64_t>(0) : ParseBytes(text);
        if (!bytes.ok()) throw CLI::ValidationError(name, std::string(bytes.status().message()));
        set(*bytes);
      },
      flag.help);
}

// Reads the entries of a list, each by `read`.
template <typename Value>
CLI::Option* AddList(CLI::App* app, const Flag& flag, std::vector<Value>* values,
                     std::function<absl::StatusOr<Value>(absl::string_view)> read) {
  const auto take = [name = absl::StrCat("--", flag.Name()), values,
                     read = std::move(read)](const std::string& text) {
    values->clear();
    for (const absl::string_view part : absl::StrSplit(text, ',')) {
      const absl::StatusOr<Value> value = read(absl::StripAsciiWhitespace(part));
      if (!value.ok()) throw CLI::ValidationError(name, std::string(value.status().message()));
      if (std::find(values->begin(), values->end(), *value) != values->end()) {
        throw CLI::ValidationError(name, absl::StrCat("\"", part, "\" is there twice"));
      }
      values->push_back(*value);
    }
  };
  return app->add_option_function<std::string>(flag.names, take, flag.help);
}

CLI::Option* AddNames(CLI::App* app, const Flag& flag, std::vector<std::string>* names) {
  const auto read = [known =
                         flag.more.choices](absl::string_view text) -> absl::StatusOr<std::string> {
    const auto found = std::find(known.begin(), known.end(), text);
    if (found != known.end()) return *found;
    return absl::InvalidArgumentError(
        absl::StrCat("there is no \"", text, "\"; there are: ", absl::StrJoin(known, ", ")));
  };
  return AddList<std::string>(app, flag, names, read);
}

CLI::Option* AddNumbers(CLI::App* app, const Flag& flag, std::vector<int64_t>* numbers) {
  const auto read = [more = flag.more](absl::string_view text) -> absl::StatusOr<int64_t> {
    if (more.may_be_auto && text == "auto") return 0;
    if (more.is_bytes) return ParseBytes(text);
    int64_t number = 0;
    if (absl::SimpleAtoi(text, &number) && static_cast<double>(number) >= more.min &&
        static_cast<double>(number) <= more.max) {
      return number;
    }
    return absl::InvalidArgumentError(absl::StrCat("\"", text, "\" is not a number that it takes"));
  };
  return AddList<int64_t>(app, flag, numbers, read);
}

CLI::Option* AddFlag(CLI::App* app, const Flag& flag) {
  const char* const names = flag.names;
  const FlagMore& more = flag.more;
  return std::visit(
      Overloaded{[&](std::string* value) {
                   CLI::Option* const option = app->add_option(names, *value, flag.help);
                   return more.choices.empty() ? option
                                               : option->check(CLI::IsMember(more.choices));
                 },
                 [&](std::vector<std::string>* value) {
                   if (!more.choices.empty()) return AddNames(app, flag, value);
                   return app->add_option(names, *value, flag.help)->delimiter(',');
                 },
                 [&](bool* value) { return AddSwitch(app, names, value, flag.help); },
                 [&](absl::Duration* value) { return AddSeconds(app, names, value, flag.help); },
                 [&](absl::optional<int64_t>* value) {
                   const auto set = [value](int64_t given) {
                     *value = given == 0 ? absl::nullopt : absl::make_optional(given);
                   };
                   if (more.is_bytes) return OrAuto(AddBytes(app, flag, set), "");
                   FlagMore or_none = more;
                   or_none.min = 0;
                   return OrAuto(WithRange<int64_t>(
                       app->add_option_function<int64_t>(names, set, flag.help), or_none));
                 },
                 [&](int64_t* value) {
                   if (more.is_bytes)
                     return AddBytes(app, flag, [value](int64_t n) { *value = n; });
                   return WithRange<int64_t>(app->add_option(names, *value, flag.help), more);
                 },
                 [&](std::vector<int64_t>* value) { return AddNumbers(app, flag, value); },
                 [&](uint64_t* value) { return app->add_option(names, *value, flag.help); },
                 [&](auto* value) {
                   using T = std::remove_pointer_t<decltype(value)>;
                   return WithRange<T>(app->add_option(names, *value, flag.help), more);
                 }},
      flag.value);
}

nlohmann::ordered_json JsonOf(const FlagValue& value) {
  return std::visit(
      Overloaded{
          [](const absl::Duration* v) { return nlohmann::ordered_json(absl::ToDoubleSeconds(*v)); },
          [](const absl::optional<int64_t>* v) { return nlohmann::ordered_json(v->value_or(0)); },
          [](const auto* v) { return nlohmann::ordered_json(*v); }},
      value);
}

}  // namespace

std::string Flag::Name() const {
  const std::string text = names;
  const std::string name = text.substr(text.find("--") + 2);
  return name.substr(0, name.find(','));
}

void AddFlags(CLI::App* app, const FlagGroups& groups) {
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      CLI::Option* const option = AddFlag(app, flag)->group(group.title);
      if (flag.more.is_required) option->required();
    }
  }
}

FlagConfig ConfigOf(const FlagGroups& groups) {
  FlagConfig config;
  for (const FlagGroup& group : groups) {
    for (const Flag& flag : group.flags) {
      if (flag.more.is_private) continue;
      std::string name = flag.Name();
      std::replace(name.begin(), name.end(), '-', '_');
      config.emplace_back(std::move(name), JsonOf(flag.value));
    }
  }
  return config;
}

std::vector<std::pair<std::string, int64_t>> KnobsOf(const FlagConfig& config) {
  std::vector<std::pair<std::string, int64_t>> knobs;
  for (const auto& [key, value] : config) {
    std::string name = key;
    std::replace(name.begin(), name.end(), '_', '-');
    if (value.is_boolean() || value.is_number_integer()) {
      knobs.emplace_back(std::move(name),
                         value.is_boolean() ? int64_t{value.get<bool>()} : value.get<int64_t>());
    } else if (value.is_number()) {
      knobs.emplace_back(absl::StrCat(name, " (in 10^-6)"),
                         std::llround(value.get<double>() * 1e6));
    } else {
      StableHash hash;
      hash.AddText(value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
      knobs.emplace_back(std::move(name), static_cast<int64_t>(hash.value() >> 1));
    }
  }
  return knobs;
}

}  // namespace sluice::bench
