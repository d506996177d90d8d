// Declaring them.
#include "job/flags.h"

#include <CLI/CLI.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"

namespace sluice::bench {
namespace {

// Adds an option whose text, empty where none is given, is read by `read`. `read` returns false of
// what it does not know.
CLI::Option* AddText(CLI::App* app, const std::string& names, const std::string& choices,
                     std::function<bool(const std::string&)> read, const std::string& help) {
  const std::string long_names = names.substr(names.find("--"));
  const std::string name = long_names.substr(0, long_names.find(','));
  const auto take = [read = std::move(read), name, choices](const std::string& text) {
    if (read(text)) return;
    throw CLI::ValidationError(name, absl::StrCat("\"", text, "\" is not one of ", choices));
  };
  return app->add_option_function<std::string>(names, take, help)->type_name(choices);
}

std::string SecondsComplaint(const std::string& text) {
  double seconds = 0;
  // Written so that what is no number is refused, too.
  if (absl::SimpleAtod(text, &seconds) && seconds >= 0.001 && seconds <= 1e10) return "";
  return absl::StrCat("\"", text, "\" is not a time of 0.001 to 1e10 seconds");
}

}  // namespace

CLI::Option* AddSwitch(CLI::App* app, const std::string& names, bool* value,
                       const std::string& help) {
  const auto read = [value](const std::string& text) {
    if (text.empty()) {
      *value = true;
      return true;
    }
    return absl::SimpleAtob(text, value);
  };
  return AddText(app, names, "[0|1]", read, help)->expected(0, 1);
}

CLI::Option* AddCheck(CLI::App* app, const std::string& names,
                      const std::function<void(Check)>& set, const std::string& help) {
  const auto read = [set](const std::string& text) {
    if (text == "none" || text == "0") {
      set(Check::kNone);
    } else if (text == "sample") {
      set(Check::kSample);
    } else if (text == "all" || text == "full" || text == "1") {
      set(Check::kAll);
    } else {
      return false;
    }
    return true;
  };
  return AddText(app, names, "none|sample|all", read, help);
}

CLI::Option* AddSeconds(CLI::App* app, const std::string& names, double* value,
                        const std::string& help) {
  return app->add_option(names, *value, help)->check(CLI::Validator(&SecondsComplaint, ""));
}

CLI::Option* AddSeconds(CLI::App* app, const std::string& names, absl::Duration* value,
                        const std::string& help) {
  const auto set = [value](double seconds) { *value = absl::Seconds(seconds); };
  return app->add_option_function<double>(names, set, help)
      ->check(CLI::Validator(&SecondsComplaint, ""));
}

CLI::Option* OrAuto(CLI::Option* option, const std::string& number) {
  const auto replace = [number](std::string& text) {
    if (text == "auto") text = number;
    return std::string();
  };
  return option->transform(CLI::Validator(replace, ""));
}

CLI::Option* AddFabric(CLI::App* app, std::string* fabric) {
  return app
      ->add_option("--fabric", *fabric,
                   "what ranks meet over: mpi, or world: by the address in SLUICE_WORLD or what "
                   "torchrun and srun say [auto: by what started the processes]")
      ->check(CLI::IsMember({"auto", "mpi", "world"}));
}

std::string FindFabric(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (arg == "--fabric" && i + 1 < argc)
      arg = argv[i + 1];
    else if (!absl::ConsumePrefix(&arg, "--fabric="))
      continue;
    if (arg == "mpi" || arg == "world") return std::string(arg);
  }
  return "auto";
}

std::string FindJsonFile(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    absl::string_view arg = argv[i];
    if (arg == "-J" || arg == "--json") {
      if (i + 1 < argc) return argv[i + 1];
    } else if (absl::ConsumePrefix(&arg, "--json=") || absl::ConsumePrefix(&arg, "-J")) {
      return std::string(arg);
    }
  }
  return "";
}

}  // namespace sluice::bench
