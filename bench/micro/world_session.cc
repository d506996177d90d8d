// Joining, comparing and leaving.
#include "micro/world_session.h"

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <utility>

#include "absl/time/time.h"
#include "job/ranks.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

constexpr absl::Duration kTimeout = absl::Minutes(2);

absl::Status NoProgress() { return absl::OkStatus(); }

}  // namespace

absl::StatusOr<std::unique_ptr<WorldSession>> WorldSession::Join() {
  const absl::StatusOr<WorldOptions> where = WorldOptionsFromEnvironment();
  if (!where.ok()) return where.status();
  auto joined = std::make_unique<WorldSession>();
  auto world = World::Join(*where);
  if (!world.ok()) return world.status();
  joined->world_ = *std::move(world);
  auto beside = joined->world_->MakeFabric();  // for what is no part of the session
  if (!beside.ok()) return beside.status();
  auto ranks = Ranks::Create(*std::move(beside), kTimeout);
  if (!ranks.ok()) return ranks.status();
  joined->ranks_ = *std::move(ranks);
  auto fabric = joined->world_->MakeFabric();
  if (!fabric.ok()) return fabric.status();
  SessionOptions options;
  options.timeout = kTimeout;
  auto session = Session::Create(*std::move(fabric), options);
  if (!session.ok()) return session.status();
  joined->session_ = *std::move(session);
  return joined;
}

absl::Status WorldSession::Barrier() { return ranks_->Barrier(kTimeout, NoProgress); }

absl::StatusOr<std::vector<double>> WorldSession::Largest(const std::vector<double>& own) {
  const std::string record(reinterpret_cast<const char*>(own.data()), own.size() * sizeof(double));
  const auto all = ranks_->AllGather(record, kTimeout, NoProgress);
  if (!all.ok()) return all.status();
  std::vector<double> largest(own.size(), 0);
  for (const std::string& each : *all) {
    for (size_t i = 0; i < own.size(); ++i) {
      double other = 0;
      each.copy(reinterpret_cast<char*>(&other), sizeof(other), i * sizeof(other));
      largest[i] = std::max(largest[i], other);
    }
  }
  return largest;
}

absl::Status WorldSession::Finish(const std::string& text, const std::string& json,
                                  const std::string& json_file) {
  const bool is_first = rank() == 0;
  ranks_->Part(kTimeout);
  ranks_.reset();  // it reports processes that end, so none does before all have come here
  const absl::Status status = session_->Close();
  if (!status.ok() || !is_first) return status;
  std::fputs(text.c_str(), stdout);
  return json_file.empty() ? absl::OkStatus() : WriteFile(json_file, json);
}

}  // namespace sluice::bench
