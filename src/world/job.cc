// Jobs of worlds, and of one process; MPI's come from where MPI is linked.
#include "sluice/job.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "sluice/fabric.h"
#include "sluice/world.h"
#include "tensor/error_text.h"
#include "transport/mpi_entry.h"
#include "world/launch.h"

namespace sluice {
namespace {

// The launcher ends the processes that are left.
[[noreturn]] void EndProcess(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

class WorldJob final : public Job {
 public:
  WorldJob(std::unique_ptr<World> world, std::unique_ptr<Fabric> first)
      : Job(JobKind::kWorld, first->rank(), first->size()),
        world_(std::move(world)),
        first_(std::move(first)) {}

  std::string Describe() const override {
    return absl::StrCat("world at ", world_->store_address());
  }
  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(absl::Duration timeout) override {
    if (first_ != nullptr) return std::move(first_);
    return world_->MakeFabric({.timeout = timeout});
  }
  [[noreturn]] void Abort(int code) override { EndProcess(code); }

 private:
  const std::unique_ptr<World> world_;
  std::unique_ptr<Fabric> first_;  // made to know how many ranks there are
};

class JobAlone final : public Job {
 public:
  JobAlone() : Job(JobKind::kAlone, 0, 1) {}

  std::string Describe() const override { return "none: one process"; }
  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(absl::Duration /*timeout*/) override {
    SLUICE_ASSIGN_OR_RETURN(auto fabrics, MakeLocalFabric(1));
    return std::move(fabrics.front());
  }
  [[noreturn]] void Abort(int code) override { EndProcess(code); }
};

absl::StatusOr<std::unique_ptr<Job>> JoinWorld(absl::Duration timeout) {
  SLUICE_ASSIGN_OR_RETURN(WorldOptions options, WorldOptionsFromEnvironment());
  if (options.timeout != absl::InfiniteDuration()) timeout = options.timeout;
  options.store_timeout = timeout;
  SLUICE_ASSIGN_OR_RETURN(auto world, World::Join(options));
  SLUICE_ASSIGN_OR_RETURN(auto fabric, world->MakeFabric({.timeout = timeout}));
  return std::make_unique<WorldJob>(std::move(world), std::move(fabric));
}

}  // namespace

bool HasMpi() { return &SluiceMpiEntry != nullptr; }

absl::StatusOr<std::unique_ptr<Job>> Job::Start(const JobOptions& options) {
  SLUICE_ASSIGN_OR_RETURN(const JobKind kind, ChooseKind(options.kind, OwnLaunch(), HasMpi()));
  switch (kind) {
    case JobKind::kMpi:
      return SluiceMpiEntry.start(options);
    case JobKind::kWorld:
      return JoinWorld(options.timeout);
    case JobKind::kAlone:
      break;
  }
  if (!options.kind && HasMpi() && SluiceMpiEntry.is_initialized()) {
    return SluiceMpiEntry.start(options);
  }
  return std::make_unique<JobAlone>();
}

}  // namespace sluice
