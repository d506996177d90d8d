// Small parts below the session: texts, cookies, child processes, and kinds of memory.
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "main/fails.h"
#include "session/base/fork_guard.h"
#include "session/base/memory_rules.h"
#include "session/base/open_device.h"
#include "session/base/operation_cookie.h"
#include "session/base/text_list.h"

namespace sluice {
namespace {

// ---- Texts as one text, and back.

TEST(TextListTest, LengthsTellTextsApart) {
  const std::vector<std::string> texts = {"a b", "", "1 x", std::string("\0\n", 2)};
  const std::string joined = JoinTexts(texts);
  EXPECT_EQ(joined, std::string("3 a b0 3 1 x2 \0\n", 16));
  const auto split = SplitTexts(joined).value();
  EXPECT_EQ(split, texts);
}

TEST(TextListTest, NoTextsAreAnEmptyText) {
  EXPECT_EQ(JoinTexts({}), "");
  const auto split = SplitTexts("").value();
  EXPECT_TRUE(split.empty());
}

TEST(TextListTest, DamagedTextsAreInternal) {
  for (const char* damaged : {"3 ab", "x a", "5", "-1 a", " a", "1 a2 b", "18446744073709551615 a",
                              "18446744073709551616 a"}) {
    EXPECT_EQ(SplitTexts(damaged).status().code(), absl::StatusCode::kInternal) << damaged;
  }
}

// ---- Slots and tickets, there and back in a cookie.

TEST(OperationCookieTest, HoldsASlotAndATicketAndIsNoMark) {
  constexpr Ticket kTicketMax = std::numeric_limits<Ticket>::max();
  constexpr size_t kSlotMax = (size_t{1} << 31) - 1;
  std::set<uint64_t> cookies = {kMarkCookie};
  for (const size_t slot : {size_t{0}, size_t{1}, size_t{77}, kSlotMax}) {
    for (const Ticket ticket : {Ticket{0}, Ticket{1}, Ticket{1} << 31, kTicketMax}) {
      const uint64_t cookie = CookieOf(slot, ticket);
      EXPECT_EQ(SlotOf(cookie), slot);
      EXPECT_EQ(TicketOf(cookie), ticket);
      EXPECT_TRUE(cookies.insert(cookie).second) << slot << " " << ticket;
    }
  }
  EXPECT_GT(SlotOf(kMarkCookie), kSlotMax);
}

// ---- Who is a child of the process that made something.

// How the child ends in which `look` says what is wrong; 0: nothing.
template <typename Look>
int InChild(const Look& look) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a hang ends
    _exit(look());
  }
  int outcome = -1;
  if (child < 0 || waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome)) return -1;
  return WEXITSTATUS(outcome);
}

TEST(ForkGuardTest, ChildrenAndTheirChildrenAreTold) {
  const ForkGuard guard;
  EXPECT_TRUE(guard.Check().ok());
  EXPECT_EQ(InChild([&guard] {
              if (!guard.InChild()) return 1;
              if (guard.Check().code() != absl::StatusCode::kFailedPrecondition) return 2;
              const ForkGuard own;
              if (own.InChild() || !own.Check().ok()) return 3;
              return InChild([&guard, &own] { return guard.InChild() && own.InChild() ? 0 : 4; });
            }),
            0);
  EXPECT_FALSE(guard.InChild());
  EXPECT_TRUE(guard.Check().ok());
}

// ---- Which memory a session takes, and which device it copies with.

// Device 1, whose own memory is `own` alone.
class OneByteAccelerator final : public Accelerator {
 public:
  std::string description() const override { return "cuda:1 (small)"; }
  DeviceKind kind() const override { return DeviceKind::kCuda; }
  int32_t ordinal() const override { return 1; }
  absl::StatusOr<std::unique_ptr<Device>> OpenDevice() override {
    return absl::ResourceExhaustedError("no stream left");
  }
  absl::Status CheckMemory(const void* data, DeviceKind kind) const override {
    if ((data == &own) == (kind == DeviceKind::kCuda)) return absl::OkStatus();
    return absl::InvalidArgumentError("not what it is said to be");
  }
  absl::Status CheckStream(StreamHandle) const override { return absl::OkStatus(); }

  std::byte own{};
};

// Sends from one byte alone.
class OneByteTransport final : public Transport {
 public:
  explicit OneByteTransport(const std::byte* may)
      : Transport(TransportTraits{.name = "one byte"}), may_(may) {}
  bool CanSendFrom(const std::byte* data) override { return data == may_; }
  absl::Status Reserve(int) override { return absl::OkStatus(); }
  absl::Status UseStaging(absl::Span<std::byte>) override { return absl::OkStatus(); }
  absl::Status Start(absl::Span<const TransportOp>) override {
    return absl::ResourceExhaustedError("no room");
  }
  absl::StatusOr<int> Poll(absl::Span<TransportEvent>) override { return 0; }
  void Withdraw() override {}
  int outstanding() const override { return 0; }

 private:
  const std::byte* const may_;
};

TensorView ViewOn(DeviceKind device, int32_t ordinal) {
  return {.device = device, .device_ordinal = ordinal};
}

TEST(MemoryRulesTest, HostMemoryIsAlwaysTaken) {
  const OneByteAccelerator accelerator;
  for (const Accelerator* with :
       {static_cast<const Accelerator*>(nullptr), static_cast<const Accelerator*>(&accelerator)}) {
    const MemoryRules rules = {.accelerator = with};
    EXPECT_TRUE(CheckKind(rules, ViewOn(DeviceKind::kCpu, 0)).ok());
    EXPECT_TRUE(CheckKind(rules, ViewOn(DeviceKind::kCudaHost, 7)).ok());
  }
}

TEST(MemoryRulesTest, DeviceMemoryIsTheAcceleratorsOwn) {
  const OneByteAccelerator accelerator;
  const MemoryRules rules = {.accelerator = &accelerator};
  EXPECT_TRUE(CheckKind(rules, ViewOn(DeviceKind::kCuda, 1)).ok());
  EXPECT_EQ(CheckKind(rules, ViewOn(DeviceKind::kCuda, 0)),
            absl::InvalidArgumentError("view is in memory of device 0 of DLPack's kind 2, the "
                                       "session uses cuda:1 (small)"));
  const absl::Status status = CheckKind(MemoryRules(), ViewOn(DeviceKind::kCuda, 1));
  EXPECT_THAT(status, Fails(absl::StatusCode::kInvalidArgument, "without an accelerator"));
}

TEST(MemoryRulesTest, TheAcceleratorLooksAtTheMemory) {
  const OneByteAccelerator accelerator;
  const MemoryRules rules = {.accelerator = &accelerator};
  const std::byte host{};
  EXPECT_TRUE(CheckMemory(rules, &accelerator.own, DeviceKind::kCuda).ok());
  EXPECT_TRUE(CheckMemory(rules, &host, DeviceKind::kCpu).ok());
  EXPECT_TRUE(absl::IsInvalidArgument(CheckMemory(rules, &host, DeviceKind::kCuda)));
  EXPECT_TRUE(absl::IsInvalidArgument(CheckMemory(rules, &accelerator.own, DeviceKind::kCpu)));
  EXPECT_TRUE(CheckMemory(MemoryRules(), &host, DeviceKind::kCuda).ok());
}

TEST(MemoryRulesTest, MessagesAreSentFromWhereTheTransportTakesThem) {
  const std::byte may{};
  const std::byte other{};
  OneByteTransport transport(&may);
  MemoryRules rules = {.transport = &transport};
  EXPECT_TRUE(CanSendFrom(rules, &other, DeviceKind::kCpu));
  EXPECT_TRUE(CanSendFrom(rules, &other, DeviceKind::kCudaHost));
  EXPECT_FALSE(CanSendFrom(rules, &may, DeviceKind::kCuda));
  rules.takes_host_memory = false;
  rules.takes_device_memory = true;
  EXPECT_FALSE(CanSendFrom(rules, &may, DeviceKind::kCpu));
  EXPECT_TRUE(CanSendFrom(rules, &may, DeviceKind::kCuda));
  EXPECT_FALSE(CanSendFrom(rules, &other, DeviceKind::kCuda));
  rules.transport = nullptr;
  EXPECT_TRUE(CanSendFrom(rules, &other, DeviceKind::kCuda));
}

TEST(OpenDeviceTest, TheAcceleratorOpensItsOwn) {
  SessionOptions options;
  const auto host = OpenDevice(options).value();
  EXPECT_EQ(host->traits().staging, DeviceKind::kCpu);
  EXPECT_FALSE(host->MakeFence().ok());
  options.accelerator = std::make_shared<OneByteAccelerator>();
  EXPECT_EQ(OpenDevice(options).status(), absl::ResourceExhaustedError("no stream left"));
}

}  // namespace
}  // namespace sluice
