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
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "job/exit_codes.h"

namespace sluice::bench {
namespace {

constexpr size_t kWidth = 96;
constexpr size_t kTextBegins = 30;

// Lines of `text`, cut at blanks, each behind `begins` blanks but for the first.
std::string Wrapped(absl::string_view text, size_t begins) {
  std::string lines;
  size_t width = begins;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (width > begins && width + 1 + word.size() > kWidth) {
      absl::StrAppend(&lines, "\n", std::string(begins, ' '));
      width = begins;
    } else if (width > begins) {
      absl::StrAppend(&lines, " ");
      ++width;
    }
    absl::StrAppend(&lines, word);
    width += word.size();
  }
  return lines;
}

// What an option takes: "TEXT", "{relay,naive}"; without ranges.
std::string ValueOf(const CLI::Option& option) {
  std::string type = option.get_type_size() == 0 ? "" : option.get_type_name();
  const size_t colon = type.find(':');
  if (colon != std::string::npos) {
    type = type[colon + 1] == '{' ? type.substr(colon + 1) : type.substr(0, colon);
  }
  return absl::StrCat(type.empty() ? "" : " ", type, option.get_required() ? " REQUIRED" : "");
}

class ExampleFirst final : public CLI::Formatter {
 public:
  ExampleFirst(const std::string& example, std::vector<std::string> first)
      : first_(std::move(first)),
        example_(absl::StrCat("Example, in the repository's folder:\n  ",
                              absl::StrReplaceAll(example, {{"\n", "\n  "}}), "\n\n")) {}

  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    all_ = first_.empty() || mode == CLI::AppFormatMode::All;
    const std::string help = CLI::Formatter::make_help(app, std::move(name), mode);
    return absl::StrCat(example_,
                        absl::StrReplaceAll(help, {{"\n\n\n\n", "\n\n"}, {"\n\n\n", "\n\n"}}));
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    options.erase(std::remove_if(options.begin(), options.end(),
                                 [this](const CLI::Option* each) { return !IsShown(*each); }),
                  options.end());
    return options.empty() ? ""
                           : CLI::Formatter::make_group(std::move(group), is_positional, options);
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string line =
        absl::StrCat("  ", option->get_name(is_positional, !is_positional), ValueOf(*option));
    if (line.size() + 2 > kTextBegins) {
      absl::StrAppend(&line, "\n");
      line.append(kTextBegins, ' ');
    } else {
      line.resize(kTextBegins, ' ');
    }
    return absl::StrCat(line, Wrapped(option->get_description(), kTextBegins), "\n");
  }

  std::string make_description(const CLI::App* app) const override {
    return Wrapped(app->get_description(), 0) + "\n";
  }

  std::string make_footer(const CLI::App* app) const override {
    return absl::StrCat(all_ ? "" : "\n--help-all tells of all other flags, too.\n\n",
                        CLI::Formatter::make_footer(app));
  }

 private:
  bool IsShown(const CLI::Option& option) const {
    if (all_) return true;
    const std::vector<std::string>& names = option.get_lnames();
    return std::any_of(names.begin(), names.end(), [this](const std::string& name) {
      return absl::StartsWith(name, "help") ||
             std::find(first_.begin(), first_.end(), name) != first_.end();
    });
  }

  const std::vector<std::string> first_;
  mutable bool all_ = true;  // of the help that is being made
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
  size_t least = flag.size() / 3 + 2;
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

void SetHelp(CLI::App* app, const std::string& example, const std::string& more,
             const std::vector<std::string>& first) {
  app->formatter(std::make_shared<ExampleFirst>(example, first));
  app->set_help_flag("-h,--help", "print this and exit");
  if (!first.empty()) app->set_help_all_flag("--help-all", "print all flags and exit");
  app->footer(absl::StrCat(more, more.empty() ? "" : "\n\n", ExitCodesText()));
}

bool NamesNoCommand(const CLI::App& app) { return app.get_subcommands().empty(); }

std::string NoCommandText(const CLI::App& app, int argc, char** argv) {
  const std::string wrong =
      argc > 1 ? absl::StrCat(app.get_name(), ": \"", argv[1], "\" is no command\n\n") : "";
  return absl::StrCat(wrong, app.help());
}

}  // namespace sluice::bench
