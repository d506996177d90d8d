// A job of MPI: MPI_COMM_WORLD.
#include <mpi.h>

#include <cstdlib>

#include "job/job.h"
#include "sluice/mpi.h"

namespace sluice::bench {
namespace {

class MpiJob final : public Job {
 public:
  MpiJob(int rank, int size) : Job(rank, size) {}

  FabricKind kind() const override { return FabricKind::kMpi; }
  std::string mpi() const override { return MpiVersion(); }
  std::string fabric() const override { return "mpi"; }

  absl::StatusOr<std::unique_ptr<Fabric>> MakeFabric(int ranks_per_node,
                                                     absl::Duration timeout) override {
    MpiFabricOptions options;
    options.timeout = timeout;
    if (ranks_per_node != 0) options.ranks_per_node = ranks_per_node;
    return MakeMpiFabric(MPI_COMM_WORLD, options);
  }

  void Leave() override { MPI_Finalize(); }

  [[noreturn]] void Abort(int code) override {
    MPI_Abort(MPI_COMM_WORLD, code);
    std::_Exit(code);
  }
};

}  // namespace

bool HasMpi() { return true; }

std::string MpiVersion() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  const std::string version(text, static_cast<size_t>(length));
  return version.substr(0, version.find_first_of(",\n"));
}

absl::StatusOr<std::unique_ptr<Job>> StartMpiJob(const JobOptions& options) {
  int provided = 0;
  const int wanted = options.all_threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_FUNNELED;
  if (MPI_Init_thread(options.argc, options.argv, wanted, &provided) != MPI_SUCCESS) {
    return absl::InternalError("MPI_Init_thread has failed");
  }
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return std::make_unique<MpiJob>(rank, size);
}

}  // namespace sluice::bench
