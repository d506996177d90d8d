// One rank of a random job: does what the job says, and leaves a file that says how it went.
#ifndef SLUICE_TESTS_CHAOS_CHAOS_JOB_H_
#define SLUICE_TESTS_CHAOS_CHAOS_JOB_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "chaos/checkpoints.h"
#include "chaos/memory_watch.h"
#include "chaos/streams.h"
#include "chaos/transfers.h"
#include "chaos/verdict.h"
#include "nlohmann/json.hpp"
#include "sluice/fabric.h"
#include "sluice/session.h"

namespace sluice::chaos {

// FOLDER/job.json, which scripts/chaos/chaos.py makes.
nlohmann::json ReadJob(const std::string& folder);

// Puts a file in its place at once, so that nobody reads half of it.
void WriteFile(const std::string& path, const std::string& content);

// Tells the script that this rank, which is this process, may be stopped or killed from now on.
void SayPid(const std::string& folder, int rank);

class ChaosJob {
 public:
  // `job` must outlive this object.
  ChaosJob(const nlohmann::json& job, std::string folder, int rank)
      : job_(job), folder_(std::move(folder)), rank_(rank) {}

  // Carries out all operations over a fabric, or notes that `maker` has failed to make one. Returns
  // if all went well. Otherwise it writes what went wrong, waits until all have had their say, and
  // ends the process.
  void Run(absl::StatusOr<std::unique_ptr<Fabric>> fabric, const std::string& maker);

 private:
  bool Create(absl::StatusOr<std::unique_ptr<Fabric>> fabric, const std::string& maker);
  bool Operate();
  bool Do(const nlohmann::json& op);
  void Close(bool ok);
  bool Sleep(const nlohmann::json& op) const;
  void Write(bool ok) const;
  [[noreturn]] void Leave() const;

  const nlohmann::json& job_;
  const std::string folder_;
  const int rank_;
  MemoryWatch watch_;
  Verdict verdict_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Transfers> transfers_;
  std::unique_ptr<Streams> streams_;
  std::unique_ptr<Checkpoints> checkpoints_;
  std::string at_ = "setup";
  int64_t done_ = 0;
  absl::Status closed_;
  double close_seconds_ = 0;
};

}  // namespace sluice::chaos

#endif  // SLUICE_TESTS_CHAOS_CHAOS_JOB_H_
