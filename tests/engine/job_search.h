// Tries every order of events of a small job: depth first, on copied gates, each state once.
#ifndef SLUICE_TESTS_ENGINE_JOB_SEARCH_H_
#define SLUICE_TESTS_ENGINE_JOB_SEARCH_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "job_world.h"

namespace sluice::deadlock {

struct SearchResult {
  int64_t states = 0;
  int64_t stuck = 0;          // states in which nothing can happen and not all is done
  bool inconsistent = false;  // a bucket was carried out by some of its members only
  std::string broken;         // the first broken promise
  std::string trace;          // the events before the first stuck state or broken promise
  int peak_slots = 0;         // at any rank, in any state
};

template <class Gate>
class JobSearch {
 public:
  explicit JobSearch(JobWorld<Gate> world) : world_(std::move(world)) {}

  SearchResult Run() {
    Visit();
    result_.states = static_cast<int64_t>(seen_.size());
    result_.peak_slots = world_.peak_slots();
    result_.broken = world_.broken();
    return result_;
  }

 private:
  void Visit() {
    if (!seen_.insert(world_.StateKey()).second || !world_.broken().empty()) return;
    const std::vector<JobEvent> events = world_.Events();
    if (events.empty() && !world_.Complete()) {
      ++result_.stuck;
      KeepTrace();
    }
    if (events.empty() && world_.Complete() && !world_.IsConsistent()) {
      result_.inconsistent = true;
      KeepTrace();
    }
    for (const JobEvent& event : events) {
      auto before = world_.rank(event.rank);
      path_.push_back(event);
      world_.Apply(event);
      if (!world_.broken().empty()) KeepTrace();
      Visit();
      path_.pop_back();
      world_.rank(event.rank) = std::move(before);
    }
  }

  void KeepTrace() {
    if (!result_.trace.empty()) return;
    for (const JobEvent& event : path_) {
      constexpr const char* kNames[] = {"start", "feed", "ask", "finish", "fail", "freeze", "thaw"};
      absl::StrAppend(&result_.trace, "rank ", event.rank, " ",
                      kNames[static_cast<size_t>(event.kind)], " ", event.index, "\n");
    }
  }

  JobWorld<Gate> world_;
  absl::flat_hash_set<typename JobWorld<Gate>::Key> seen_;
  std::vector<JobEvent> path_;
  SearchResult result_;
};

template <class Gate>
SearchResult Search(const Job& job, Asking asking, Feeding feeding = Feeding::kById) {
  return JobSearch<Gate>(JobWorld<Gate>(job, asking, feeding)).Run();
}

// One engine alone, with failures at any time.
inline SearchResult SearchWithFailures(const Job& job, Asking asking) {
  JobWorld<Engine> world(job, asking);
  world.AllowFailures();
  return JobSearch<Engine>(std::move(world)).Run();
}

}  // namespace sluice::deadlock

#endif  // SLUICE_TESTS_ENGINE_JOB_SEARCH_H_
