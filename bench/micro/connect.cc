// micro-bench connect: how long Connect takes, and how much of that is planning.
//
// The lower half of the ranks has a model's weights by rows, the upper half wants them by columns.
// With --stages, each of the lower ranks has tensors of its own, so that no two of them share the
// work of describing them. Compile of the whole transfer, which all ranks know, comes beside it.
// Prints medians over --rounds of the slowest rank's times.
//
//   scripts/spawn.sh -n 64 build/bin/micro-bench connect --json connect.json
#include "sluice/connect.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "micro/commands.h"
#include "micro/world_session.h"
#include "report/spread.h"

namespace sluice::bench {
namespace {

struct ConnectOptions {
  int tensors = 1000;
  int rounds = 11;
  bool stages = false;
  std::string json;
};

Mesh MeshOf(int begin, int end) {
  std::vector<int> ranks(static_cast<size_t>(end - begin));
  std::iota(ranks.begin(), ranks.end(), begin);
  return *Mesh::Create({end - begin}, ranks);
}

std::string NameOf(int tensor) {
  static const char* const kParts[] = {
      "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight",
      "self_attn.o_proj.weight", "mlp.gate_proj.weight",    "mlp.up_proj.weight",
      "mlp.down_proj.weight",    "input_layernorm.weight",  "post_attention_layernorm.weight"};
  return absl::StrCat("model.layers.", tensor / 9, ".", kParts[tensor % 9]);
}

struct ConnectJob {
  TransferSpec whole;
  ConnectSpec own;
  std::unique_ptr<std::byte[]> memory;  // never touched
};

ConnectJob MakeJob(const ConnectOptions& options, int rank, int size) {
  const int servers = std::max(1, size / 2), trainers = std::max(1, size - servers);
  const std::vector<int64_t> shape = {1024, 64};
  const Layout dst = {MeshOf(size - servers, size), {Placement::Shard(1)}};
  ConnectJob job;
  size_t bytes = 0;
  for (int t = 0; t < options.tensors; ++t) {
    const int stage = t * trainers / options.tensors;
    const Layout src = options.stages ? Layout{MeshOf(stage, stage + 1), {Placement::Replicate()}}
                                      : Layout{MeshOf(0, trainers), {Placement::Shard(0)}};
    job.whole.tensors.push_back({NameOf(t), shape, DType::kBF16, DType::kBF16, src, dst});
    for (const auto& [layout, tensors] :
         {std::pair(&src, &job.own.sources), std::pair(&dst, &job.own.targets)}) {
      if (!layout->mesh.PositionOf(rank)) continue;
      const std::vector<int64_t> local = *LocalShape(*layout, shape, rank);
      TensorView view = DenseView(nullptr, local, DType::kBF16);
      view.byte_offset = static_cast<int64_t>(bytes);
      bytes += static_cast<size_t>((local[0] * local[1] * 2 + 63) / 64 * 64);
      tensors->push_back({{NameOf(t), shape, DType::kBF16, *layout, view}});
    }
  }
  job.memory.reset(new std::byte[bytes]);
  for (auto* const tensors : {&job.own.sources, &job.own.targets}) {
    for (ConnectTensor& tensor : *tensors) tensor.view.data = job.memory.get();
  }
  return job;
}

// Calls `work` on all ranks at once; appends the slowest one's milliseconds.
template <typename Call>
absl::Status Time(WorldSession* world, std::vector<double>* times, Call call) {
  absl::Status status = world->Barrier();
  const absl::Time begin = absl::Now();
  if (status.ok()) status = call();
  if (!status.ok()) return status;
  const auto slowest = world->Largest({absl::ToDoubleMilliseconds(absl::Now() - begin)});
  if (slowest.ok()) times->push_back(slowest->front());
  return slowest.status();
}

absl::Status MeasureConnect(const ConnectOptions& options) {
  auto joined = WorldSession::Join();
  if (!joined.ok()) return joined.status();
  WorldSession* const world = joined->get();
  const ConnectJob job = MakeJob(options, world->rank(), world->size());
  std::vector<double> connects, compiles;
  for (int round = 0; round < options.rounds; ++round) {
    std::unique_ptr<Connection> connection;
    absl::Status status = Time(world, &connects, [&] {
      auto made = Connect(world->session(), job.own);
      if (made.ok()) connection = *std::move(made);
      return made.status();
    });
    if (status.ok()) status = connection->Drop();
    Transfer* transfer = nullptr;
    if (status.ok()) {
      status = Time(world, &compiles, [&] {
        const auto made = world->session()->Compile(job.whole);
        if (made.ok()) transfer = *made;
        return made.status();
      });
    }
    if (status.ok()) status = world->session()->Drop(transfer);
    if (!status.ok()) return status;
  }
  const int size = world->size();
  return world->Finish(
      absl::StrFormat("%d ranks, %d tensors%s: Connect %.1f ms (first %.1f, slowest %.1f), "
                      "Compile alone %.1f ms\n",
                      size, options.tensors, options.stages ? ", stages" : "", Median(connects),
                      connects.front(), *std::max_element(connects.begin(), connects.end()),
                      Median(compiles)),
      nlohmann::ordered_json({{"ranks", size},
                              {"tensors", options.tensors},
                              {"stages", options.stages},
                              {"connect_ms", connects},
                              {"compile_ms", compiles}})
              .dump() +
          "\n",
      options.json);
}

}  // namespace

Work AddConnect(CLI::App* app) {
  const auto options = std::make_shared<ConnectOptions>();
  app->add_option("--tensors", options->tensors)->check(CLI::Range(1, 1 << 20));
  app->add_option("--rounds", options->rounds)->check(CLI::Range(1, 1000));
  app->add_flag("--stages", options->stages);
  app->add_option("--json", options->json, "what rank 0 writes");
  return [options] { return MeasureConnect(*options); };
}

}  // namespace sluice::bench
