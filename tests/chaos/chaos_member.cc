// One rank of a random job in a world: a process that no mpirun has started.
//
//   chaos_member FOLDER RANK           (FOLDER/job.json is the job; chaos.py makes it)
//   chaos_member FOLDER RANK second    joins as that rank, beside the one that does the job, and
//                                      leaves what it was told in FOLDER/second-RANK.json
//
// The environment says which member of which world it is.
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "chaos/chaos_job.h"
#include "chaos/streams.h"
#include "nlohmann/json.hpp"
#include "sluice/world.h"
#include "transport/passing_fabric.h"

namespace sluice::chaos {
namespace {

using nlohmann::json;

absl::StatusOr<std::unique_ptr<World>> Join(absl::Duration store_timeout) {
  absl::StatusOr<WorldOptions> options = WorldOptionsFromEnvironment();
  if (!options.ok()) return options.status();
  options->store_timeout = store_timeout;
  return World::Join(*options);
}

int JoinAsSecond(const std::string& folder, int rank) {
  const absl::Status status = Join(absl::Seconds(5)).status();
  WriteFile(absl::StrCat(folder, "/second-", rank, ".json"),
            json({{"code", absl::StatusCodeToString(status.code())},
                  {"message", std::string(status.message())}})
                .dump());
  return 0;
}

// Ranks k*N .. k*N+N-1 are node k, as far as they are told; 0: they are where they are.
std::unique_ptr<Fabric> Placed(std::unique_ptr<Fabric> fabric, int ranks_per_node) {
  if (ranks_per_node == 0) return fabric;
  std::vector<int> nodes;
  for (int rank = 0; rank < fabric->size(); ++rank) nodes.push_back(rank / ranks_per_node);
  return std::make_unique<PassingFabric>(std::move(fabric), std::move(nodes));
}

int Main(const std::string& folder, int rank) {
  const json job = ReadJob(folder);
  if (rank == 0) {
    const absl::Status made = MakeDatasets(job.at("datasets"), folder);
    if (!made.ok()) std::cerr << made << "\n";
  }
  ChaosJob chaos(job, folder, rank);
  absl::StatusOr<std::unique_ptr<World>> world = Join(absl::Seconds(60));
  if (!world.ok()) {
    chaos.Run(world.status(), "Join");
    return 0;
  }
  SayPid(folder, rank);
  absl::StatusOr<std::unique_ptr<Fabric>> fabric = (*world)->MakeFabric();
  if (fabric.ok()) {
    fabric = Placed(*std::move(fabric), job.at("session").at("ranks_per_node"));
    if (!job.at("world").at("keeps_world").at(static_cast<size_t>(rank)).get<bool>()) {
      world->reset();
    }
  }
  chaos.Run(std::move(fabric), "MakeFabric");
  return 0;
}

}  // namespace
}  // namespace sluice::chaos

int main(int argc, char** argv) {
  int rank = -1;
  if (argc < 3 || !absl::SimpleAtoi(argv[2], &rank) || rank < 0) return 2;
  if (argc == 4 && std::string(argv[3]) == "second") {
    return sluice::chaos::JoinAsSecond(argv[1], rank);
  }
  return sluice::chaos::Main(argv[1], rank);
}
