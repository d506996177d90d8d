// The baselines must be right, or a comparison with them says nothing: random redistributions, also
// reduced and cast, verified element by element.
#include <mpi.h>

#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "baselines_rig.h"
#include "gtest/gtest.h"
#include "oracle/random_layout.h"
#include "patient_fabric.h"
#include "reshard/baselines/baseline.h"
#include "reshard/baselines/wire.h"
#include "reshard/case_memory.h"
#include "workload/collectives.h"
#include "workload/inline_case.h"
#include "workload/reduce.h"

namespace sluice::bench {
namespace {

Layout RandomLayout(oracle::Dice* dice, int dims) {
  std::vector<int> ranks(static_cast<size_t>(WorldSize()));
  std::iota(ranks.begin(), ranks.end(), 0);
  if (dice->Chance(40)) {
    dice->Shuffle(&ranks);
    ranks.resize(static_cast<size_t>(dice->Between(1, WorldSize())));
  }
  Layout layout;
  layout.mesh = oracle::RandomMesh(dice, std::move(ranks));
  layout.placements = oracle::RandomPlacements(dice, layout.mesh, dims);
  return layout;
}

struct Kind {
  bool partial;
  bool cast;
};

TensorTransfer RandomTensor(oracle::Dice* dice, Kind kind) {
  const std::vector<DType> floats = {DType::kF64,  DType::kF32,    DType::kF16,
                                     DType::kBF16, DType::kF8E4M3, DType::kF8E5M2};
  const std::vector<DType> others = {DType::kI64, DType::kI32, DType::kI8, DType::kU8};
  TensorTransfer tensor;
  tensor.name = "random";
  tensor.shape = oracle::RandomShape(dice, 4, 4000);
  const auto dims = static_cast<int>(tensor.shape.size());
  tensor.src = RandomLayout(dice, dims);
  tensor.dst = RandomLayout(dice, dims);
  tensor.src_dtype = dice->Pick(kind.cast || dice->Chance(50) ? floats : others);
  tensor.dst_dtype = kind.cast ? dice->Pick(floats) : tensor.src_dtype;
  for (Placement& placement : tensor.src.placements) {
    if (!kind.partial || !dice->Chance(50)) continue;
    placement = Placement::Partial(
        dice->Pick<ReduceOp>({ReduceOp::kSum, ReduceOp::kAvg, ReduceOp::kMax, ReduceOp::kMin}));
  }
  return tensor;
}

TransferSpec RandomSpec(uint64_t seed, Kind kind) {
  oracle::Dice dice(seed * 31 + static_cast<uint64_t>(WorldSize()));
  TransferSpec spec;
  const int64_t tensors = dice.Between(1, 3);
  for (int64_t i = 0; i < tensors; ++i) {
    spec.tensors.push_back(RandomTensor(&dice, kind));
    spec.tensors.back().name = absl::StrCat("tensor", i);
  }
  return spec;
}

class BaselinesMpiTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { wire_ = Wire::Create(kPatience).value(); }

  // Runs `spec` twice. Returns whether the baseline could.
  bool IsRight(const TransferSpec& spec, int64_t seed, const CasePlaces& places = {}) {
    auto memory = CaseMemory::Create(spec, WorldRank(), seed, true, places);
    EXPECT_TRUE(memory.ok());
    const std::unique_ptr<Baseline> baseline = MakeBaseline(GetParam());
    const absl::Status planned =
        baseline->Plan({&spec, memory->src(), memory->dst(), WorldRank(), wire_.get()});
    if (absl::IsUnimplemented(planned)) return false;
    EXPECT_TRUE(planned.ok()) << planned;
    for (int round = 0; round < 2; ++round) {
      EXPECT_TRUE(memory->PoisonTargets().ok());
      MPI_Barrier(wire_->comm());
      wire_->Arm(kPatience, nullptr);
      const absl::Status ran = baseline->Run();
      EXPECT_TRUE(ran.ok()) << ran;
      MPI_Barrier(wire_->comm());
      EXPECT_EQ(memory->CountWrongTargets(), 0) << "seed " << seed;
      EXPECT_EQ(memory->CountWrongSources(), 0) << "seed " << seed;
    }
    MPI_Barrier(wire_->comm());
    return true;
  }

  // How many of `count` random transfers the baseline could carry out.
  int RunRandom(uint64_t count, Kind kind) {
    int done = 0;
    for (uint64_t seed = 1; seed <= count; ++seed) {
      const TransferSpec spec = RandomSpec(seed, kind);
      if (IsRight(spec, static_cast<int64_t>(seed))) ++done;
      if (HasFailure()) {
        ADD_FAILURE() << "seed " << seed << ": "
                      << oracle::Describe(spec.tensors[0].src, spec.tensors[0].shape) << " to "
                      << oracle::Describe(spec.tensors[0].dst, spec.tensors[0].shape);
        return done;
      }
    }
    return done;
  }

  std::unique_ptr<Wire> wire_;
};

INSTANTIATE_TEST_SUITE_P(All, BaselinesMpiTest, testing::ValuesIn(BaselineNames()),
                         [](const testing::TestParamInfo<std::string>& entry) {
                           std::string name = entry.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

TEST_P(BaselinesMpiTest, RandomTransfers) {
  const int done = RunRandom(40, {false, false});
  if (GetParam() == "alltoallw") {
    EXPECT_GE(done, 10) << "of 40 are boxes";
  } else if (GetParam() == "mpi-collective") {
    EXPECT_LT(done, 40) << "random layouts are rarely a collective's";
  } else {
    EXPECT_EQ(done, 40);
  }
}

TEST_P(BaselinesMpiTest, Casts) {
  const int done = RunRandom(20, {false, true});
  if (GetParam() == "alltoallw" || GetParam() == "mpi-collective") {
    EXPECT_LT(done, 20);
  } else {
    EXPECT_EQ(done, 20);
  }
}

TEST_P(BaselinesMpiTest, PartialSources) {
  const int done = RunRandom(30, {true, true});
  if (GetParam() == "alltoallw" || GetParam() == "mpi-collective") {
    EXPECT_LT(done, 30);
  } else {
    EXPECT_EQ(done, 30);
  }
}

TEST_P(BaselinesMpiTest, ManySmallTensorsAndLargeMessages) {
  TransferSpec spec;
  std::vector<int> ranks(static_cast<size_t>(WorldSize()));
  std::iota(ranks.begin(), ranks.end(), 0);
  std::vector<int> backwards(ranks.rbegin(), ranks.rend());
  TensorTransfer tensor;
  tensor.src = {*Mesh::Create({WorldSize()}, ranks), {Placement::Shard(0)}};
  tensor.dst = {*Mesh::Create({WorldSize()}, backwards), {Placement::Shard(1)}};
  tensor.shape = {17, 23};
  spec.tensors.assign(20, tensor);
  tensor.shape = {1024, 1024};  // beyond what MPI sends without asking the receiver
  spec.tensors.push_back(tensor);
  for (size_t i = 0; i < spec.tensors.size(); ++i) {
    spec.tensors[i].name = absl::StrCat("tensor", i);
  }
  EXPECT_EQ(IsRight(spec, 5), GetParam() != "mpi-collective");
}

TEST_P(BaselinesMpiTest, SharedMemory) {
  const std::unique_ptr<Session> session = MakeSession();
  CasePlaces places;
  places.shared = session.get();
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    IsRight(RandomSpec(seed, {false, false}), static_cast<int64_t>(seed), places);
  }
  const bool done = IsRight(ToCopies({WorldSize() - 1}, 1 << 20), 7, places);
  EXPECT_EQ(done, GetParam() != "mpi-collective");
  if (WorldSize() > 1) IsRight(ToCopies({0, WorldSize() / 2}, 1 << 18), 8, places);
  EXPECT_TRUE(session->Close().ok());
}

TEST_P(BaselinesMpiTest, EveryCollective) {
  for (const std::string& name : CollectiveNames()) {
    for (const char* dtype : {"f32", "i64", "bf16"}) {
      InlineFlags flags;
      flags.collective = name;
      flags.ranks = WorldSize();
      flags.dtype = dtype;
      flags.begin_bytes = "10K";
      flags.tensors = 2;
      const auto workload = MakeInlineCases(flags).value();
      const bool done = IsRight(workload.cases.at(0).spec, 3);
      if (GetParam() != "mpi-collective") continue;
      const bool adds = name == "reduce-scatter" || name == "all-reduce";
      EXPECT_EQ(done, !adds || absl::string_view(dtype) != "bf16") << name << " of " << dtype;
    }
  }
}

TEST(WireTest, AMessageThatDoesNotComeEndsTheWait) {
  const auto wire = Wire::Create(kPatience).value();
  std::byte got{0};
  const std::byte sent{42};
  Wire::Requests requests;
  wire->Arm(absl::Milliseconds(20), nullptr);
  ASSERT_TRUE(wire->Receive(&got, 1, WorldRank(), kPayloadTag, &requests).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(wire->Wait(&requests)));
  wire->Arm(kPatience, [] { return absl::AbortedError("another rank has failed"); });
  EXPECT_TRUE(absl::IsAborted(wire->Wait(&requests)));
  wire->Arm(kPatience, nullptr);
  ASSERT_TRUE(wire->Send(&sent, 1, WorldRank(), kPayloadTag, &requests).ok());
  EXPECT_TRUE(wire->Wait(&requests).ok());
  EXPECT_EQ(got, sent);
}

}  // namespace
}  // namespace sluice::bench
