// Writing results, with what the process has mapped of shared memory.
#include "fault_result.h"

#include <unistd.h>

#include <csignal>
#include <fstream>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"

namespace sluice::session_test {
namespace {

std::string Quoted(absl::string_view text) {
  return absl::StrCat(
      "\"", absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"\"", "\\\""}, {"\n", "\\n"}}), "\"");
}

// The files in shared memory that this process has mapped: none may outlive the job.
std::string SharedFiles() {
  std::set<std::string> files;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const size_t path = line.find("/dev/shm/");
    if (path != line.npos) files.insert(Quoted(line.substr(path)));
  }
  return absl::StrCat("[", absl::StrJoin(files, ", "), "]");
}

void Write(const std::string& folder, int rank, const std::string& fields) {
  const std::string name = absl::StrCat(folder, "/rank-", rank, ".json");
  {
    std::ofstream file(name);
    file << "{\"rank\": " << rank << ", \"pid\": " << getpid() << ", \"shared\": " << SharedFiles()
         << fields << "}\n";
  }
  std::ofstream(folder + "/written") << rank << std::endl;
}

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

}  // namespace

void WriteResult(const std::string& folder, int rank, const FaultResult& result) {
  Write(folder, rank,
        absl::StrCat(", \"code\": ", Quoted(absl::StatusCodeToString(result.status.code())),
                     ", \"message\": ", Quoted(result.status.message()),
                     ", \"seconds\": ", Seconds(result.error_ns - result.start_ns),
                     ", \"close\": ", Quoted(result.closed.ToString()),
                     ", \"close_seconds\": ", Seconds(result.closed_ns - result.error_ns)));
}

void WatchCallsOf(const std::string& folder, int rank) {
  WatchCalls(absl::Seconds(45), [folder, rank](const char* call) {
    Write(folder, rank, absl::StrCat(", \"stuck_in\": ", Quoted(call)));
    _exit(1);
  });
}

void Vanish(const std::string& folder, int rank, bool stop) {
  if (stop) Write(folder, rank, ", \"stopping\": true");
  raise(stop ? SIGSTOP : SIGKILL);
}

}  // namespace sluice::session_test
