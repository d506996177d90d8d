// What a member of a sync reports: versions, catch-ups and losses, as lines and as JSON. The keys
// are an interface.
#ifndef SLUICE_BENCH_SYNC_REPORT_H_
#define SLUICE_BENCH_SYNC_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "report/report.h"
#include "sync/options.h"

namespace sluice::bench {

// A version that has come to all members of an epoch.
struct SyncVersion {
  int64_t version = 0;
  int64_t epoch = 0;
  bool catch_up = false;
  int64_t time_us = 0;   // on the slowest member
  int64_t own_us = 0;    // on this one; 0: it has no part
  int64_t ended_us = 0;  // when that was, of the system clock
  int64_t wrong = 0;     // on all members
  int trainers = 0;
  int servers = 0;
  // Payload that left ranks of each role.
  int64_t trainer_bytes = 0;
  int64_t server_bytes = 0;
  int64_t payload_bytes = 0;           // that came to stay
  std::vector<std::string> caught_up;  // who, in a catch-up
};

// An epoch that has begun: how long this member took to have a session of it, and from then on to
// be ready for versions. Waits for other members count.
struct SyncEpochTimes {
  int64_t epoch = 0;
  int trainers = 0;
  int servers = 0;
  int64_t session_us = 0;
  int64_t ready_us = 0;
};

struct SyncLost {
  std::string member;   // "server 3"
  std::string process;  // "process 4711 on node7"
  int64_t epoch = 0;
  int64_t version = 0;  // that was under way, or was to come
  int64_t noticed_us = 0;
};

struct SyncReport : JobReport {
  std::string store;
  std::string role;
  int rank = -1;
  int size = 0;
  std::string wires;
  std::vector<SyncVersion> versions;
  std::vector<SyncEpochTimes> epochs;
  std::vector<SyncLost> lost;
};

// Microseconds since 1970, of the system clock.
int64_t UnixUs();

std::string VersionHeader();
std::string VersionLine(const SyncVersion& version);
std::string EpochLine(const SyncEpochTimes& times);
std::string LostLine(const SyncReport& report, const SyncLost& lost);
// Of the whole run.
std::string SyncFooter(const SyncReport& report);
std::string JsonText(const SyncOptions& options, const SyncReport& report);

// Elements that were wrong in any version.
int64_t AllWrong(const SyncReport& report);

}  // namespace sluice::bench

#endif  // SLUICE_BENCH_SYNC_REPORT_H_
