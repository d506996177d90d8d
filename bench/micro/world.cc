// micro-bench connect and small-sync: two measurements on the ranks of a world.
//
// connect: how long Connect takes, and how much of that is planning. The lower half of the ranks
// has a model's weights by rows, the upper half wants them by columns. With --stages, each of the
// lower ranks has tensors of its own, so that no two of them share the work of describing them.
// Compile of the whole transfer, which all ranks know, comes beside it.
//
// small-sync: how long a sync of many small tensors takes, from rows to columns.
// bench/python/small_sync.py does the same from Python, so that the two show what Python costs.
// Before each run destinations are overwritten, after it every element is compared.
//
//   scripts/spawn.sh -n 64 build/bin/micro-bench connect --json connect.json
//   scripts/spawn.sh -n 2 build/bin/micro-bench small-sync --json small.json
#include "sluice/world.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "base/clock.h"
#include "job/ranks.h"
#include "micro/commands.h"
#include "report/spread.h"
#include "sluice/connect.h"
#include "sluice/session.h"
#include "sluice/status.h"
#include "workload/write_file.h"

namespace sluice::bench {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::Duration kTimeout = absl::Minutes(2);

struct RunOptions {
  int tensors;
  int rounds = 11;
  bool stages = false;
  std::string json = {};
};

// A session over the ranks of a world, which scripts/spawn.sh starts. All calls are collective.
struct WorldSession {
  std::unique_ptr<World> world;
  std::unique_ptr<Ranks> ranks;  // beside the session
  std::unique_ptr<Session> session;

  absl::Status Join() {
    SLUICE_ASSIGN_OR_RETURN(const WorldOptions where, WorldOptionsFromEnvironment());
    SLUICE_ASSIGN_OR_RETURN(world, World::Join(where));
    SLUICE_ASSIGN_OR_RETURN(auto beside, world->MakeFabric());
    SLUICE_ASSIGN_OR_RETURN(ranks, Ranks::Create(std::move(beside), kTimeout));
    SLUICE_ASSIGN_OR_RETURN(auto fabric, world->MakeFabric());
    SessionOptions options;
    options.timeout = kTimeout;
    SLUICE_ASSIGN_OR_RETURN(session, Session::Create(std::move(fabric), options));
    return absl::OkStatus();
  }

  // Replaces each time by the slowest rank's.
  absl::Status TakeSlowest(std::vector<double>* times) const {
    const std::string record(reinterpret_cast<const char*>(times->data()),
                             times->size() * sizeof(double));
    SLUICE_ASSIGN_OR_RETURN(const auto all, ranks->AllGather(record, kTimeout));
    for (const std::string& each : all) {
      for (size_t i = 0; i < times->size(); ++i) {
        double other = 0;
        each.copy(reinterpret_cast<char*>(&other), sizeof(other), i * sizeof(other));
        (*times)[i] = std::max((*times)[i], other);
      }
    }
    return absl::OkStatus();
  }

  // Calls `work` on all ranks at once; appends the microseconds of this one.
  template <typename Call>
  absl::Status Time(std::vector<double>* times, Call work) const {
    absl::Status status = ranks->Barrier(kTimeout);
    const int64_t begin = MonotonicNs();
    if (status.ok()) status = work();
    times->push_back(static_cast<double>(MonotonicNs() - begin) / 1e3);
    return status;
  }

  // Rank 0 prints the text, and writes the results to `json_file` unless that is empty.
  absl::Status Finish(const std::string& text, const Json& json, const std::string& json_file) {
    const bool is_first = ranks->rank() == 0;
    ranks->Part(kTimeout);
    ranks.reset();  // it reports processes that end, so none does before all have come here
    absl::Status status = session->Close();
    if (!status.ok() || !is_first) return status;
    std::fputs(text.c_str(), stdout);
    return json_file.empty() ? absl::OkStatus() : WriteFile(json_file, json.dump() + "\n");
  }
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

ConnectJob MakeJob(const RunOptions& options, int rank, int size) {
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

absl::Status MeasureConnect(const RunOptions& options) {
  WorldSession world;
  SLUICE_RETURN_IF_ERROR(world.Join());
  const int size = world.ranks->size();
  const ConnectJob job = MakeJob(options, world.ranks->rank(), size);
  std::vector<double> connects, compiles;
  for (int round = 0; round < options.rounds; ++round) {
    std::unique_ptr<Connection> connection;
    absl::Status status = world.Time(&connects, [&]() -> absl::Status {
      SLUICE_ASSIGN_OR_RETURN(connection, Connect(world.session.get(), job.own));
      return absl::OkStatus();
    });
    if (status.ok()) status = connection->Drop();
    Transfer* transfer = nullptr;
    if (status.ok()) {
      status = world.Time(&compiles, [&] {
        const auto made = world.session->Compile(job.whole);
        if (made.ok()) transfer = *made;
        return made.status();
      });
    }
    if (status.ok()) status = world.session->Drop(transfer);
    if (!status.ok()) return status;
  }
  for (std::vector<double>* const times : {&connects, &compiles}) {
    SLUICE_RETURN_IF_ERROR(world.TakeSlowest(times));
    for (double& us : *times) us /= 1e3;
  }
  return world.Finish(
      absl::StrFormat("%d ranks, %d tensors%s: Connect %.1f ms (first %.1f, slowest %.1f), "
                      "Compile alone %.1f ms\n",
                      size, options.tensors, options.stages ? ", stages" : "", Median(connects),
                      connects.front(), *std::max_element(connects.begin(), connects.end()),
                      Median(compiles)),
      {{"ranks", size},
       {"tensors", options.tensors},
       {"stages", options.stages},
       {"connect_ms", connects},
       {"compile_ms", compiles}},
      options.json);
}

constexpr int64_t kSide = 16;  // of each tensor
constexpr int kRuns = 200;
constexpr int kWarmups = 20;

// A rank's tensors: rows of each, and then columns of each.
struct SmallTensors {
  SmallTensors(int count, int rank, int size) : first(rank * (kSide / size)), width(kSide / size) {
    const Mesh mesh = MeshOf(0, size);
    rows.resize(static_cast<size_t>(count * kSide * width));
    columns.resize(rows.size());
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      rows[i] = ValueOf(at / (kSide * width), first + at % (kSide * width) / kSide, at % kSide);
    }
    for (int t = 0; t < count; ++t) {
      for (const int dim : {0, 1}) {
        const Layout layout = {mesh, {Placement::Shard(dim)}};
        float* const data = (dim == 0 ? rows : columns).data() + t * kSide * width;
        const std::vector<int64_t> shape = {kSide, kSide};
        (dim == 0 ? spec.sources : spec.targets)
            .push_back({{absl::StrCat("w", t), shape, DType::kF32, layout,
                         DenseView(data, *LocalShape(layout, shape, rank), DType::kF32)}});
      }
    }
  }

  static float ValueOf(int64_t tensor, int64_t row, int64_t column) {
    return static_cast<float>((tensor * kSide + row) * kSide + column);
  }

  absl::Status Check() const {
    int64_t wrong = 0;
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto at = static_cast<int64_t>(i);
      wrong += columns[i] != ValueOf(at / (kSide * width), at % (kSide * width) / width,
                                     first + at % width)
                   ? 1
                   : 0;
    }
    return wrong == 0 ? absl::OkStatus()
                      : absl::DataLossError(absl::StrCat(wrong, " elements are wrong"));
  }

  const int64_t first, width;  // of this rank's rows, and of its columns
  std::vector<float> rows, columns;
  ConnectSpec spec;
};

absl::Status MeasureSmall(const RunOptions& options) {
  WorldSession world;
  SLUICE_RETURN_IF_ERROR(world.Join());
  const int size = world.ranks->size();
  if (kSide % size != 0) return absl::InvalidArgumentError("takes 1, 2, 4, 8 or 16 ranks");
  SmallTensors tensors(options.tensors, world.ranks->rank(), size);
  SLUICE_ASSIGN_OR_RETURN(auto connection, Connect(world.session.get(), tensors.spec));
  std::vector<double> syncs, starts;
  for (int run = -kWarmups; run < kRuns; ++run) {
    std::fill(tensors.columns.begin(), tensors.columns.end(), -1.0F);
    double start_us = 0;
    absl::Status status = world.Time(&syncs, [&] {
      const int64_t begin = MonotonicNs();
      auto started = connection->Start();
      start_us = static_cast<double>(MonotonicNs() - begin) / 1e3;
      return started.ok() ? started->Wait() : started.status();
    });
    if (status.ok()) status = tensors.Check();
    if (!status.ok()) return status;
    starts.push_back(start_us);
  }
  for (std::vector<double>* const times : {&syncs, &starts}) {
    times->erase(times->begin(), times->begin() + kWarmups);
    SLUICE_RETURN_IF_ERROR(world.TakeSlowest(times));
  }
  SLUICE_RETURN_IF_ERROR(connection->Drop());
  return world.Finish(
      absl::StrFormat("%d ranks, %d tensors: %.1f us, of which Start takes %.1f us\n", size,
                      options.tensors, Median(syncs), Median(starts)),
      {{"ranks", size}, {"tensors", options.tensors}, {"sync_us", syncs}, {"start_us", starts}},
      options.json);
}

}  // namespace

Work AddConnect(CLI::App* app) {
  const auto options = std::make_shared<RunOptions>(RunOptions{.tensors = 1000});
  app->add_option("--tensors", options->tensors)->check(CLI::Range(1, 1 << 20));
  app->add_option("--rounds", options->rounds)->check(CLI::Range(1, 1000));
  app->add_flag("--stages", options->stages);
  app->add_option("--json", options->json, "what rank 0 writes");
  return [options] { return MeasureConnect(*options); };
}

Work AddSmallSync(CLI::App* app) {
  const auto options = std::make_shared<RunOptions>(RunOptions{.tensors = 300});
  app->add_option("--tensors", options->tensors)->check(CLI::Range(1, 1 << 20));
  app->add_option("--json", options->json, "what rank 0 writes");
  return [options] { return MeasureSmall(*options); };
}

}  // namespace sluice::bench
