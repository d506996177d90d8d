// Ranks of a job of any kind. Their texts cross a fabric of their own.
#include "ranks.h"

#include <sched.h>

#include <cstdio>
#include <numeric>
#include <utility>

#include "sluice/status.h"

namespace examples {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(2);

}  // namespace

Ranks::Ranks()
    : job_(sluice::OrDie(sluice::Job::Start({.all_threads = true, .timeout = kTimeout}))),
      own_(sluice::OrDie(MakeFabric())) {}

// Nobody ends before all have come to their end. A rank that has gone already is no error any more.
Ranks::~Ranks() { Exchange("end", nullptr).IgnoreError(); }

absl::StatusOr<std::unique_ptr<sluice::Fabric>> Ranks::MakeFabric() {
  return job_->MakeFabric(kTimeout);
}

absl::Status Ranks::Exchange(const std::string& mine, std::vector<std::string>* texts) {
  sluice::RecordExchange exchange(own_.get());
  absl::Status status = exchange.Start(mine);
  while (status.ok()) {
    const absl::StatusOr<bool> done = exchange.Poll(texts, nullptr);
    if (!done.ok() || *done) return done.status();
    if (meanwhile_) meanwhile_();
    sched_yield();
  }
  return status;
}

std::vector<std::string> Ranks::AllGather(const std::string& mine) {
  std::vector<std::string> texts;
  CheckOk(Exchange(mine, &texts));
  return texts;
}

std::vector<int64_t> Ranks::AllGather(int64_t mine) {
  std::vector<int64_t> numbers;
  numbers.reserve(static_cast<size_t>(size()));
  for (const std::string& text : AllGather(std::to_string(mine))) {
    numbers.push_back(std::stoll(text));
  }
  return numbers;
}

int64_t Ranks::Sum(int64_t mine) {
  const std::vector<int64_t> numbers = AllGather(mine);
  return std::accumulate(numbers.begin(), numbers.end(), int64_t{0});
}

void Ranks::CheckOk(const absl::Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "rank %d: %s\n", rank(), status.ToString().c_str());
  job_->Abort(1);
}

}  // namespace examples
