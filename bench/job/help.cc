// The example comes first by a formatter of its own.
#include "job/help.h"

#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
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

}  // namespace

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
