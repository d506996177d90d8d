// Becomes python3 with share/sluice/report/report.py.
#include "report/run_report.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "commands.h"
#include "job/exit_codes.h"
#include "job/help.h"
#include "workload/shipped_file.h"

namespace sluice::bench {

void AddReportFlags(CLI::App* app, ReportOptions* o) {
  app->add_option("FILE", o->files, "what --json or --trace has written; several make one page")
      ->required();
  app->add_option("-o,--out", o->out, "the page, for any browser [report.html]");
  app->add_option("--title", o->title, "its heading [Sluice report]");
  SetHelp(app,
          "build/bin/sluice-bench reshard --preset etha-3-no_partial --plan-only --json "
          "/tmp/plan.json\n"
          "build/bin/sluice-bench report /tmp/plan.json -o /tmp/report.html",
          "It needs python3 with two packages: pip install 'matplotlib>=3.7' jinja2");
}

int ShowReport(const ReportOptions& options, const absl::Status& flags) {
  if (!flags.ok()) {
    std::cerr << "sluice-bench report: " << flags.message() << "\n";
    return kBadUsageExit;
  }
  const std::string script = ShippedPath("report/report.py");
  std::vector<std::string> words = {"python3", script};
  words.insert(words.end(), options.files.begin(), options.files.end());
  words.insert(words.end(), {"--out=" + options.out, "--title=" + options.title});
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::cout.flush();
  execvp("python3", arguments.data());
  std::cerr << "sluice-bench report: cannot start python3, which makes the page: "
            << std::strerror(errno) << "\n";
  return kFailedExit;
}

}  // namespace sluice::bench
