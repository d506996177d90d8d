// The contract of operations whose bytes are rows: each end may have rows of its own, and what lies
// between them is not touched.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "oracle/sampled.h"
#include "transport/contract_content.h"
#include "transport/transport_contract.h"

namespace sluice {
namespace {

struct Shipment {
  size_t bytes;
  RowLay sender;
  RowLay receiver;
};

// Everyone sends `shipment` to the next rank, `rounds` times.
void Ship(const Shipment& shipment, uint64_t rounds, ContractRank& r) {
  r.Do([&r] { ASSERT_TRUE(r.transport().Reserve(2).ok()); });
  if (r.size() == 1) return;
  auto received = std::make_shared<std::byte*>();
  for (uint64_t round = 0; round < rounds; ++round) {
    r.Do([&r, shipment, round, received] {
      const size_t extent = shipment.receiver.Extent(shipment.bytes);
      *received = r.Buffer(extent);
      r.Write(*received, std::vector<std::byte>(extent, kContractGap));
      const std::vector<std::byte> content =
          SpreadContent(shipment.sender, PatternContent(shipment.bytes, round));
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
      const auto expected = SpreadContent(shipment.receiver, PatternContent(shipment.bytes, round));
      EXPECT_TRUE(AreSame(r.Read(*received, expected.size()), expected));
    });
  }
}

TEST_P(TransportContract, CarriesRowsAsTheyLie) {
  constexpr size_t kRow = 768, kBytes = 512 * kRow;  // long enough for a rendezvous
  // 512 bytes meet rows of 768 only after 1536.
  std::vector<RowLay> lays = {{}, {kRow, 1000}, {512, 520}};
  if (!oracle::kSanitized) lays.insert(lays.end(), {{kRow / 3, 300}, {kRow * 4, kRow * 4}});
  for (const RowLay& sender : lays) {
    for (const RowLay& receiver : lays) {
      Run([&](ContractRank& r) {
        Ship({kBytes, sender, receiver}, static_cast<uint64_t>(oracle::Thinned(3)), r);
      });
    }
  }
}

TEST_P(TransportContract, CarriesManyKindsOfRows) {
  Run([](ContractRank& r) {
    for (size_t rows = 1; rows < 40; ++rows) {
      Ship({rows * 16, {16, 16 + rows}, {8, 8 + rows}}, uint64_t{oracle::Sampled(3)}, r);
    }
  });
}

}  // namespace
}  // namespace sluice
