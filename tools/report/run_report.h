// sluice-bench report: starts the Python program that makes a page of files of results.
#ifndef SLUICE_TOOLS_REPORT_RUN_REPORT_H_
#define SLUICE_TOOLS_REPORT_RUN_REPORT_H_

#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace sluice::bench {

struct ReportOptions {
  std::vector<std::string> files;
  std::string out = "report.html";
  std::string title;
};

void AddReportFlags(CLI::App* app, ReportOptions* options);

}  // namespace sluice::bench

#endif  // SLUICE_TOOLS_REPORT_RUN_REPORT_H_
