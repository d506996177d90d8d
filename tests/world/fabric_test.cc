// Fabrics of worlds: order, several of them, failures that name who failed, and lifetimes.
#include "sluice/fabric.h"

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/environment_value.h"
#include "sluice/store.h"
#include "sluice/world.h"
#include "tensor/stable_hash.h"
#include "transport/tcp/tcp_handshake.h"
#include "transport/tcp_stranger.h"
#include "world/card.h"
#include "world/members.h"
#include "world/store/store_greeting.h"
#include "world/store/store_tools.h"

namespace sluice::world_test {
namespace {

using absl::StatusCode;
using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

using Fabrics = std::vector<std::unique_ptr<Fabric>>;
using Worlds = std::vector<std::unique_ptr<World>>;

// One call of MakeFabric on each world at once; the errors.
std::vector<absl::Status> TryAll(const Worlds& worlds) {
  std::vector<absl::Status> statuses(worlds.size());
  OnThreads(static_cast<int>(worlds.size()), [&](int i) {
    statuses[static_cast<size_t>(i)] = worlds[static_cast<size_t>(i)]->MakeFabric().status();
  });
  return statuses;
}

TEST(WorldFabricTest, OfAllSizes) {
  for (const int size : {1, 2, 3, 5, 8, 16}) {
    SCOPED_TRACE(size);
    ExpectGathers(WorldFabrics(size));
  }
}

TEST(WorldFabricTest, RanksOfOneProcessShareANode) {
  for (const auto& fabric : WorldFabrics(3)) EXPECT_THAT(fabric->node_of_rank(), Each(0));
}

TEST(WorldFabricTest, OfTwoRoles) {
  const Worlds worlds = JoinAll(AllOptions(MakeMemoryStore(), {{"trainer", 2}, {"server", 3}}));
  ExpectGathers(MakeFabrics(worlds));
  EXPECT_EQ(worlds[0]->FabricRank("server", 2), 4);
}

TEST(WorldFabricTest, OverATcpStore) {
  const auto server = ServeOnLoopback("token");
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"trainer", 1}, {"server", 2}});
  for (WorldOptions& each : options) {
    each.store = server->address();
    each.token = "token";
  }
  ExpectGathers(MakeFabrics(JoinAll(options)));
}

TEST(WorldFabricTest, SeveralAtOnce) {
  const Worlds worlds = JoinAll(AllOptions(MakeMemoryStore(), {{"member", 3}}));
  const Fabrics first = MakeFabrics(worlds);
  const Fabrics second = MakeFabrics(worlds);
  ExpectGathers(second);
  ExpectGathers(first);
  ExpectGathers(MakeFabrics(worlds));
}

TEST(WorldFabricTest, NothingIsLeftAtTheStore) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  {
    const Worlds worlds = JoinAll(AllOptions(store, {{"member", 3}}));
    const Fabrics first = MakeFabrics(worlds);
    const Fabrics second = MakeFabrics(worlds);
    EXPECT_THAT(*store->List("sluice/fabric/"), IsEmpty());
  }
  EXPECT_THAT(*store->List("sluice/member/"), IsEmpty());
}

TEST(WorldFabricTest, OutlivesWorldsAndTheStore) {
  Fabrics fabrics;
  {
    const auto server = ServeOnLoopback();
    std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", 3}});
    for (WorldOptions& each : options) each.store = server->address();
    Worlds worlds = JoinAll(options);
    fabrics = MakeFabrics(worlds);
    worlds[1].reset();
    ExpectGathers(fabrics);
  }
  ExpectGathers(fabrics);
  fabrics.clear();
}

TEST(WorldFabricTest, WorldsOutliveFabrics) {
  const Worlds worlds = JoinAll(AllOptions(MakeMemoryStore(), {{"member", 2}}));
  MakeFabrics(worlds).clear();
  ExpectGathers(MakeFabrics(worlds));
  EXPECT_TRUE(worlds[0]->missing()->empty());
}

TEST(WorldFabricTest, NamesWhoHasNotCalled) {
  const Worlds worlds = JoinAll(AllOptions(MakeMemoryStore(), {{"trainer", 1}, {"server", 2}}));
  MakeFabricOptions options;
  options.timeout = absl::Milliseconds(50);
  std::vector<absl::Status> statuses(2);
  OnThreads(2, [&](int i) {
    statuses[static_cast<size_t>(i)] = worlds[static_cast<size_t>(i)]->MakeFabric(options).status();
  });
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded) << status;
    EXPECT_THAT(status.ToString(), HasSubstr("server 1 (process"));
  }
}

// Whoever was given up passes over the tries that have failed.
TEST(WorldFabricTest, ALateMemberMeetsTheNextTry) {
  const Worlds worlds = JoinAll(AllOptions(MakeMemoryStore(), {{"member", 3}}));
  MakeFabricOptions options;
  options.timeout = absl::Milliseconds(10);
  for (int tries = 0; tries < 3; ++tries) {
    EXPECT_EQ(worlds[0]->MakeFabric(options).status().code(), StatusCode::kDeadlineExceeded);
  }
  EXPECT_EQ(worlds[1]->MakeFabric(options).status().code(), StatusCode::kDeadlineExceeded);
  ExpectGathers(MakeFabrics(worlds));
}

// Waits until a member has put its card and its count at the store.
StoreEntries UntilOneWaits(Store* store) { return AwaitEntries(*store, "sluice/fabric/", 2); }

TEST(WorldFabricTest, AMemberThatLeavesIsNamed) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  Worlds worlds = JoinAll(AllOptions(store, {{"member", 2}}));
  absl::Status status;
  OnThreads(2, [&](int i) {
    if (i == 0) {
      status = worlds[0]->MakeFabric().status();
    } else {
      UntilOneWaits(store.get());
      worlds[1].reset();
    }
  });
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("member 1 (process"), HasSubstr("left")));
}

TEST(WorldFabricTest, WiresInConflictFailOnAll) {
  // Whether there is UCX does not matter, and sanitizers cannot load it.
  const EnvironmentValue no_ucx("SLUICE_UCX_LIBRARY", "/no/such/library");
  std::vector<WorldOptions> options = AllOptions(MakeMemoryStore(), {{"member", 3}});
  options[2].wires = "ucx";
  const Worlds worlds = JoinAll(options);
  for (int tries = 0; tries < 2; ++tries) {
    for (const absl::Status& status : TryAll(worlds)) {
      EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
      EXPECT_THAT(status.ToString(), AllOf(HasSubstr("rank 2"), HasSubstr("ucx")));
    }
  }
}

TEST(WorldFabricTest, AMemberThatCannotListenFailsAll) {
  std::vector<WorldOptions> options = AllOptions(MakeMemoryStore(), {{"member", 2}});
  options[1].bind = "192.0.2.1";  // of no host
  const Worlds worlds = JoinAll(options);
  for (const absl::Status& status : TryAll(worlds)) {
    EXPECT_THAT(status.ToString(),
                AllOf(HasSubstr("rank 1"), HasSubstr("member 1 (process"), HasSubstr("192.0.2.1")));
  }
}

// As if member 1 spoke another version, or a stranger with the token wrote garbage.
TEST(WorldFabricTest, GarbageAtTheStoreIsAnError) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  const Worlds worlds = JoinAll(AllOptions(store, {{"member", 2}}));
  absl::Status status;
  OnThreads(2, [&](int i) {
    if (i == 0) {
      status = worlds[0]->MakeFabric().status();
      return;
    }
    std::string prefix = UntilOneWaits(store.get())[0].first;
    prefix.resize(prefix.rfind("card/"));
    EXPECT_TRUE(store->Set(absl::StrCat(prefix, "card/000001"), "garbage").ok());
    EXPECT_TRUE(store->Set(absl::StrCat(prefix, "word"), "all here").ok());
  });
  EXPECT_THAT(status.ToString(), AllOf(HasSubstr("member 1 (process"), HasSubstr("no address")));
}

// The number of a fabric is said in the clear, and so is what lies at the store. Whoever knows both
// has not proved anything.
TEST(WorldFabricTest, LinksAskForTheSecretOfTheWorld) {
  const std::shared_ptr<Store> store = MakeMemoryStore();
  std::vector<WorldOptions> options = AllOptions(store, {{"member", 2}});
  for (WorldOptions& each : options) each.token = "a token";
  Worlds worlds = JoinAll(options);
  absl::Status status;
  OnThreads(2, [&](int i) {
    if (i == 0) {
      status = worlds[0]->MakeFabric().status();
      return;
    }
    const auto [key, card] = UntilOneWaits(store.get())[0];
    const std::string prefix = key.substr(0, key.rfind("card/"));
    EXPECT_TRUE(store->Set(absl::StrCat(prefix, "card/000001"), card).ok());
    EXPECT_TRUE(store->Set(absl::StrCat(prefix, "word"), "all here").ok());
    const std::string name = prefix.substr(14, prefix.size() - 15);  // of "sluice/fabric/NAME/"
    const std::string stored = *store->Get("sluice/secret", absl::ZeroDuration());
    const std::string secret = absl::StrCat(*MakeStoreProof("a token", "links", stored), " ", name);
    StableHash number;
    number.AddText(secret);
    TcpIdentity own = {1, 2, number.value(), ""};
    const TcpHello hello = *MakeHello(own, 0);
    TcpStranger stranger(ParseCard(card)->tcp_address);
    EXPECT_TRUE(stranger.Send(&hello, sizeof(hello)));
    TcpChallenge challenge = {};
    ssize_t read = 0;
    while (read >= 0 && read < static_cast<ssize_t>(sizeof(challenge))) {
      std::this_thread::yield();
      read = stranger.Read(&challenge, sizeof(challenge));
    }
    EXPECT_EQ(read, static_cast<ssize_t>(sizeof(challenge))) << "it is not this world's number";
    EXPECT_FALSE(CheckChallenge(own, hello, challenge).ok()) << "the links have no secret";
    own.secret = absl::StrCat(stored, " ", name);
    EXPECT_FALSE(CheckChallenge(own, hello, challenge).ok()) << "the store tells their secret";
    own.secret = secret;
    EXPECT_TRUE(CheckChallenge(own, hello, challenge).ok());
    worlds[1].reset();
  });
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
}

TEST(WorldFabricTest, AStoreThatEndsIsAnError) {
  auto server = ServeOnLoopback();
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", 2}});
  for (WorldOptions& each : options) each.store = server->address();
  const Worlds worlds = JoinAll(options);
  server.reset();
  for (const absl::Status& status : TryAll(worlds)) {
    EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  }
  EXPECT_FALSE(worlds[0]->members().ok());
  EXPECT_FALSE(worlds[0]->missing().ok());
}

// While one waits for the others.
TEST(WorldFabricTest, AStoreThatEndsMeanwhileIsAnError) {
  auto server = ServeOnLoopback();
  std::vector<WorldOptions> options = AllOptions(nullptr, {{"member", 2}});
  for (WorldOptions& each : options) each.store = server->address();
  const Worlds worlds = JoinAll(options);
  auto store = ConnectStore(server->address(), {}).value();
  absl::Status status;
  OnThreads(2, [&](int i) {
    if (i == 0) {
      status = worlds[0]->MakeFabric().status();
      return;
    }
    UntilOneWaits(store.get());
    server.reset();
  });
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
}

}  // namespace
}  // namespace sluice::world_test
