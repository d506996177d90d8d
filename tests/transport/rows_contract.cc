// The contract of operations whose bytes are rows: each end may have rows of its own, and what lies
// between them is not touched.
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "oracle/sampled.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

// How one end lays out a message. No rows: one stretch.
struct Lay {
  size_t row_bytes = 0;
  size_t stride_bytes = 0;

  size_t Extent(size_t bytes) const {
    if (row_bytes == 0) return bytes;
    return (bytes / row_bytes - 1) * stride_bytes + row_bytes;
  }
  size_t Place(size_t at) const {
    return row_bytes == 0 ? at : at / row_bytes * stride_bytes + at % row_bytes;
  }
};

std::byte Payload(size_t at, int round) {
  return static_cast<std::byte>(at * 7 + at / 251 + static_cast<size_t>(round));
}
constexpr std::byte kGap{0xA5};

// Memory with the message of a round as it lies there.
std::vector<std::byte> Content(const Lay& lay, size_t bytes, int round) {
  std::vector<std::byte> content(lay.Extent(bytes), kGap);
  for (size_t i = 0; i < bytes; ++i) content[lay.Place(i)] = Payload(i, round);
  return content;
}

struct Shipment {
  size_t bytes;
  Lay sender;
  Lay receiver;
};

// Everyone sends `shipment` to the next rank, a few times.
void Ship(const Shipment& shipment, ContractRank& r) {
  constexpr int kRounds = oracle::Sampled(3);
  r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(2).ok()); });
  if (r.size() == 1) return;
  auto received = std::make_shared<std::byte*>();
  for (int round = 0; round < kRounds; ++round) {
    r.Do([&r, shipment, round, received] {
      const size_t extent = shipment.receiver.Extent(shipment.bytes);
      *received = r.Buffer(extent);
      r.Write(*received, std::vector<std::byte>(extent, kGap));
      const std::vector<std::byte> content = Content(shipment.sender, shipment.bytes, round);
      std::byte* const out = r.Buffer(content.size());
      r.Write(out, content);
      TransportOp send = r.Send((r.rank() + 1) % r.size(), 5, out, shipment.bytes);
      send.row_bytes = shipment.sender.row_bytes;
      send.stride_bytes = shipment.sender.stride_bytes;
      TransportOp receive =
          r.Receive((r.rank() + r.size() - 1) % r.size(), 5, *received, shipment.bytes);
      receive.row_bytes = shipment.receiver.row_bytes;
      receive.stride_bytes = shipment.receiver.stride_bytes;
      r.Start({receive, send});
    });
    r.UntilAllEnded();
    r.Do([&r, shipment, round, received] {
      const auto expected = Content(shipment.receiver, shipment.bytes, round);
      EXPECT_TRUE(r.Read(*received, expected.size()) == expected);
    });
  }
}

TEST_P(TransportContract, CarriesRowsAsTheyLie) {
  constexpr size_t kRow = 768, kBytes = 512 * kRow;  // long enough for a rendezvous
  // 512 bytes meet rows of 768 only after 1536.
  const std::vector<Lay> lays = {
      {}, {kRow, 1000}, {kRow / 3, 300}, {kRow * 4, kRow * 4}, {512, 520}};
  for (const Lay& sender : lays) {
    for (const Lay& receiver : lays) {
      Run([&](ContractRank& r) { Ship({kBytes, sender, receiver}, r); });
    }
  }
}

TEST_P(TransportContract, CarriesManyKindsOfRows) {
  Run([](ContractRank& r) {
    for (size_t rows = 1; rows < 40; ++rows) Ship({rows * 16, {16, 16 + rows}, {8, 8 + rows}}, r);
  });
}

}  // namespace
}  // namespace sluice
