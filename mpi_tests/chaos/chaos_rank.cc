// One rank of a random job under mpirun.
//
//   chaos_rank FOLDER    (FOLDER/job.json is the job; scripts/chaos/chaos.py makes it and judges)
#include <mpi.h>

#include <iostream>
#include <string>

#include "chaos/chaos_job.h"
#include "chaos/streams.h"
#include "nlohmann/json.hpp"
#include "sluice/mpi.h"

namespace sluice::chaos {
namespace {

int Main(const std::string& folder) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const nlohmann::json job = ReadJob(folder);
  if (rank == 0) {
    const absl::Status made = MakeDatasets(job.at("datasets"), folder);
    if (!made.ok()) std::cerr << made << "\n";
  }
  MPI_Barrier(MPI_COMM_WORLD);
  SayPid(folder, rank);
  MpiFabricOptions placed;
  const int ranks_per_node = job.at("session").at("ranks_per_node");
  if (ranks_per_node > 0) placed.ranks_per_node = ranks_per_node;
  ChaosJob(job, folder, rank).Run(MakeMpiFabric(MPI_COMM_WORLD, placed), "MakeMpiFabric");
  return 0;
}

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &level);
  const int code = sluice::chaos::Main(argv[1]);
  MPI_Finalize();
  return code;
}
