// The example comes first by a formatter of its own.
#include "job/help.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/string_view.h"
#include "job/exit_codes.h"

namespace sluice::bench {
namespace {

class ExampleFirst final : public CLI::Formatter {
 public:
  explicit ExampleFirst(const std::string& example)
      : example_(absl::StrCat("Example, in the repository's folder:\n  ",
                              absl::StrReplaceAll(example, {{"\n", "\n  "}}), "\n\n")) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    return absl::StrCat(example_, CLI::Formatter::make_help(app, std::move(name), mode));
  }

 private:
  const std::string example_;
};

// How many letters have to be put in, left out or changed to make `b` of `a`.
size_t Distance(absl::string_view a, absl::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t corner = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, corner + 1, row[j] + 1});
    }
  }
  return row[b.size()];
}

// The flag of `app` that is nearest to `flag`, with its dashes; empty if none is near.
std::string Nearest(const CLI::App& app, absl::string_view flag) {
  std::string nearest;
  size_t least = std::max<size_t>(1, (flag.size() - 2) / 3) + 1;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) {
      const size_t distance = Distance(flag.substr(2), name);
      if (distance >= least) continue;
      least = distance;
      nearest = "--" + name;
    }
  }
  return nearest;
}

}  // namespace

absl::Status FlagsStatus(const CLI::App& app, const CLI::ParseError& error) {
  const auto commands = app.get_subcommands();
  const CLI::App& of = commands.empty() ? app : *commands.front();
  const std::vector<std::string> unknown = of.remaining();
  if (dynamic_cast<const CLI::ExtrasError*>(&error) == nullptr || unknown.empty()) {
    return absl::InvalidArgumentError(error.what());
  }
  const std::string first = unknown[0].substr(0, unknown[0].find('='));
  const bool is_long = absl::StartsWith(first, "--") && first.size() > 2;
  const std::string meant = is_long ? Nearest(of, first) : "";
  const std::string name =
      commands.empty() ? app.get_name() : absl::StrCat(app.get_name(), " ", of.get_name());
  return absl::InvalidArgumentError(
      absl::StrCat(absl::StartsWith(first, "-") ? absl::StrCat("there is no flag ", first)
                                                : absl::StrCat("\"", first, "\" is of no flag"),
                   meant.empty() ? "" : absl::StrCat("; did you mean ", meant, "?"),
                   meant.empty() ? "; see " : " See ", name, " --help"));
}

void SetHelp(CLI::App* app, const std::string& example, const std::string& more) {
  app->formatter(std::make_shared<ExampleFirst>(example));
  app->footer(absl::StrCat(more, more.empty() ? "" : "\n\n", ExitCodesText()));
}

bool NamesNoCommand(const CLI::App& app) { return app.get_subcommands().empty(); }

std::string NoCommandText(const CLI::App& app, int argc, char** argv) {
  const std::string wrong =
      argc > 1 ? absl::StrCat(app.get_name(), ": \"", argv[1], "\" is no command\n\n") : "";
  return absl::StrCat(wrong, app.help());
}

}  // namespace sluice::bench
